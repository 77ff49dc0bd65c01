"""What commands log to standard error."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog import PrintLoggerFactory

from shapleyprio.common.wording import visible
from shapleyprio.config import Config


def set_up_logging(config: Config) -> None:
    """Sets up what a daemon logs, itself and by its libraries, to standard error."""
    renderer: structlog.types.Processor = structlog.dev.ConsoleRenderer(colors=False)
    if config.service.log_format == "json":
        renderer = structlog.processors.JSONRenderer()
    level: int = logging.getLevelNamesMapping()[config.service.log_level.upper()]
    first: list[structlog.types.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.types.Processor] = [
        structlog.processors.format_exc_info,
        _visible,
        renderer,
    ]
    libraries = logging.StreamHandler(sys.stderr)
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    libraries.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=first, processors=[remove_meta, *last]
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[libraries])
    # it warns of each cycle that is put off because the one before still runs
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    structlog.configure(
        processors=[*first, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=PrintLoggerFactory(sys.stderr),
    )


def log_warnings() -> None:
    """Logs warnings alone, for commands that run some cycles themselves."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=PrintLoggerFactory(sys.stderr),
    )


def _visible(
    _logger: structlog.types.WrappedLogger, _method: str, event: structlog.types.EventDict
) -> structlog.types.EventDict:
    """Writes out what a terminal would obey; only a traceback has lines of its own."""
    return {
        name: "\n".join(map(visible, value.split("\n") if name == "exception" else [value]))
        if isinstance(value, str)
        else value
        for name, value in event.items()
    }
