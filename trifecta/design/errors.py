"""Errors that end a command with one clear line."""


class TrifectaError(Exception):
    """Base of the errors a command turns into one line and an exit code."""

    exit_code = 1


class UserError(TrifectaError):
    """Bad input: the message names the file, the field and the remedy. Exit code 2."""

    exit_code = 2


class CannotError(TrifectaError):
    """This machine cannot do it (permission, port, disk, missing program); the message says the remedy. Exit code 3."""

    exit_code = 3
