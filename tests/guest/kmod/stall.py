#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A transfer from the first of two cabled guests into a small receive buffer of
the second one (scripts/guest --peer).

usage: stall.py transfer RCVBUF SECONDS   in the first guest; prints one JSON object
       stall.py receive RCVBUF            the end in the second guest

SO_RCVBUF is set after accept; 0 leaves the buffer to the kernel.  Bytes and
seconds are counted at the receiver, from the first byte to the last one.
"""
import json
import os
import socket
import subprocess
import sys
import time

ADDRESS, PORT = "10.9.0.2", 7000
RESULT = "/tmp/stall.json"   # in the second guest
WAIT_S = 60


def receive(rcvbuf):
    with socket.create_server(("", PORT)) as listener:
        connection, _ = listener.accept()
    if int(rcvbuf):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(rcvbuf))
    count, first, last = 0, 0.0, 0.0
    buffer = bytearray(65536)
    try:
        while got := connection.recv_into(buffer):
            last = time.monotonic()
            first = first or last
            count += got
    except ConnectionResetError:
        pass  # the sender's time is over
    result = {"bytes": count, "seconds": last - first,
              "bytes_per_s": count / (last - first) if last > first else 0,
              "rcvbuf": connection.getsockopt(socket.SOL_SOCKET,
                                              socket.SO_RCVBUF)}
    with open(RESULT + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.rename(RESULT + ".new", RESULT)


def send(seconds):
    connection = socket.create_connection((ADDRESS, PORT))
    end = time.monotonic() + float(seconds)
    # What is queued when the time is over would take as long again.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.settimeout(0.1)
    data = bytes(65536)
    while time.monotonic() < end:
        try:
            connection.send(data)
        except TimeoutError:
            pass
    connection.close()


def on_peer(command):
    done = subprocess.run(["peer", "sh", "-c", command], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout


def wait_for(command):
    end = time.monotonic() + WAIT_S
    while (answer := on_peer(command))[0]:
        if time.monotonic() > end:
            sys.exit(f"stall: on the peer, waited too long for: {command}")
        time.sleep(0.1)  # polling interval
    return answer[1]


def transfer(rcvbuf, seconds):
    script = os.path.realpath(__file__)
    on_peer(f"rm -f {RESULT}; exec {script} receive {rcvbuf} >/dev/null 2>&1 &")
    wait_for(f"ss -Htln 'sport = :{PORT}' | grep -q .")
    send(seconds)
    print(wait_for(f"cat {RESULT}"))


if __name__ == "__main__":
    {"transfer": transfer, "receive": receive}[sys.argv[1]](*sys.argv[2:])
