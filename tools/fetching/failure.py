"""The one exception that becomes a sentence for the user."""


class FetchError(Exception):
    """A failure that its user can understand: one sentence, no stack trace."""
