"""The errors that dbdyno raises on purpose; ``cli`` turns each into one message and an exit code."""


class DbdynoError(Exception):
    """Something dbdyno can explain: what was wrong, where, and the remedy."""

    exit_code = 1


class UserError(DbdynoError):
    """The user's input is at fault; nothing on the host has been touched."""

    exit_code = 2


class TrialError(DbdynoError):
    """One trial failed; the host was put back and the run may go on."""


class HostError(DbdynoError):
    """The host cannot do what the study needs, for any trial; the run stops."""
