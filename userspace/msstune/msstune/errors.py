# SPDX-License-Identifier: GPL-2.0-only
"""Errors that the user gets as one sentence, and their exit status."""


class TuneError(Exception):
    """Something failed: exit status 1."""

    status = 1


class UsageError(TuneError):
    """The command line or a file on it is wrong: exit status 2."""

    status = 2


class NotSupported(TuneError):
    """This machine cannot do it: exit status 3."""

    status = 3
