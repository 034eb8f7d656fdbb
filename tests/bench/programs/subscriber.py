#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""An MQTT subscriber with a chosen receive buffer: subscribes, takes COUNT
messages, prints bytes and seconds from the request of the first message to the
end of the last.

usage: subscriber.py ADDRESS PORT SO_RCVBUF before|after COUNT

*before*: set before the handshake, as Java clients do (setReceiveBufferSize);
*after*: set on the connected socket.  0: left alone.
"""
import json
import socket
import sys
import time

import paho.mqtt.client as mqtt


class Client(mqtt.Client):
    """paho 1.6 has a hook behind connect(), none before."""

    before = 0

    def _create_socket_connection(self):
        if not self.before:
            return super()._create_socket_connection()
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.before)
        sock.connect((self._host, self._port))
        return sock


def main():
    address, port, size, when, count = sys.argv[1:6]
    port, size, count = int(port), int(size), int(count)
    received = []
    start = None

    def on_connect(client, *_):
        nonlocal start
        start = time.monotonic()
        client.subscribe("bulk/#")

    def on_message(client, _, message):
        received.append(len(message.payload))
        if len(received) == count:
            client.took = time.monotonic() - start
            client.disconnect()

    client = Client(client_id="subscriber")
    client.on_connect, client.on_message = on_connect, on_message
    if size and when == "before":
        client.before = size
    elif size:
        client.on_socket_open = lambda _c, _u, sock: sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    client.connect(address, port, keepalive=3600)
    client.loop_forever()
    print(json.dumps({"bytes": sum(received), "seconds": client.took}))


if __name__ == "__main__":
    main()
