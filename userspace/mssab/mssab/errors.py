# SPDX-License-Identifier: GPL-2.0-only
"""Errors that mssab reports in one sentence, with their exit status.  Pure."""


class MssabError(Exception):
    """Something failed; exit status 1."""

    status = 1


class LoadFailed(MssabError):
    """A load ended without a measurement: an outcome of the arm."""


class UsageError(MssabError):
    """The command line or a file is wrong; exit status 2."""

    status = 2


class NotSupported(MssabError):
    """This machine cannot run it; exit status 3."""

    status = 3
