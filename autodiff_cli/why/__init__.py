"""Why a gradient is missing, zero or not finite: the first cause on the way from the loss to a
name, with its line, and a repair that was run before it is proposed."""

from .answering import why as why
