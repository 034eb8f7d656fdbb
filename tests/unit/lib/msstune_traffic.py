# SPDX-License-Identifier: GPL-2.0-only
"""Traffic for tests of verify: its metrics follow from the settings of a tree."""

FILES = {"net/ipv4/tcp_rmem": "4096\t65536\t65536\n", "net/ipv4/tcp_ecn": "2\n"}
#: Exponents of noise that show neither harm nor safety, nor an effect of the order.
UNEVEN = (1, -.5, .6, -.9, .9, -.3, .3, -.1)


class Traffic:
    """Replaces throughput.watch: goodput follows from the settings in force."""

    def __init__(self, root, **effects):
        self.root, self.blocks = root, []
        #: Setting: metrics and the factors by which it changes them.
        self.effects = {"tcp_rmem": {}, "tcp_ecn": {}} | effects
        self.noise = 0.0
        self.rtt_noise = 1.0
        self.disturb = lambda number: None

    def changed(self):
        return [name for name in self.effects for key, text in FILES.items()
                if key.endswith(name)
                and (self.root / "proc/sys" / key).read_text() != text]

    def __call__(self, over, before):
        changed = self.changed()
        self.blocks.append(changed)
        self.disturb(len(self.blocks))
        numbers = {"bytes_per_s": 1e6, "retransmits": 1, "sent_segments": 1000,
                   "rtt_us": 1e4, "carried_percent": 0.0}
        for name in changed:
            for key, factor in self.effects[name].items():
                numbers[key] *= factor
        # From pair to pair, in whatever order the blocks of a pair are drawn.
        if changed:
            numbers["rtt_us"] *= self.rtt_noise ** UNEVEN[
                sum(map(bool, self.blocks)) % len(UNEVEN)]
        # Reproducible, and different in the two blocks of a pair.
        numbers["bytes_per_s"] *= 1 + self.noise * (-1) ** (len(self.blocks) // 3)
        return numbers
