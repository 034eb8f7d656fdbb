# SPDX-License-Identifier: GPL-2.0-only
"""The search of `bisect-step --series`: every change for the worse in a series
of commits, also one that only takes back an earlier gain.  Some commits, evenly
spaced, are recorded.  Where a metric is worse than at the recorded commit
before, the commits between are halved.  Pure: it calls back to record and to
compare, and knows commits by their place in the series."""
from dataclasses import dataclass, field

POINTS = 9


def spaced(last, number):
    """At most @number places from 0 to @last, both included."""
    number = max(min(number, last + 1), 2)
    return sorted({round(k * last / (number - 1)) for k in range(number)})


@dataclass
class Finding:
    """Worse at @after than at @before, a recorded commit earlier."""
    before: int
    after: int
    figures: list

    @property
    def exact(self):
        return self.after == self.before + 1


@dataclass
class Search:
    """@usable(place): record it; False if it cannot be judged.
    @worse(before, after): metrics that are worse, [] for none.
    @confirmed(before, after): the same with recordings of other seeds."""
    usable: object
    worse: object
    confirmed: object
    recorded: dict = field(default_factory=dict)    # place: could it be?

    def record(self, place):
        if place not in self.recorded:
            self.recorded[place] = self.usable(place)
        return self.recorded[place]

    def between(self, before, after):
        """A place as near to the centre as can be judged; None if there is
        none."""
        centre = (before + after) // 2
        places = sorted(range(before + 1, after),
                        key=lambda place: (abs(place - centre), place))
        return next((place for place in places if self.record(place)), None)

    def narrow(self, before, after):
        """Findings between two places that were recorded."""
        figures = self.worse(before, after)
        if not figures:
            return []
        centre = self.between(before, after)
        if centre is not None:
            found = self.narrow(before, centre) + self.narrow(centre, after)
            # Both halves may be within their bounds.
            return found or self.confirm(before, after)
        return self.confirm(before, after)

    def confirm(self, before, after):
        figures = self.confirmed(before, after)
        return [Finding(before, after, figures)] if figures else []

    def run(self, last, number):
        """All findings from place 0 to @last."""
        good = [place for place in spaced(last, number) if self.record(place)]
        return [finding for before, after in zip(good, good[1:])
                for finding in self.narrow(before, after)]


def beyond(figures, bounds):
    """Of the metrics of two single recordings, those that moved by more than
    @bounds, which know how much recordings of one kernel differ."""
    return [f for f in figures
            if abs(f["change"]) > bounds.get(f["name"], f["bound"])]
