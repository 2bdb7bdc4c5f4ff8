"""The command line: one file a command, heavy imports inside the commands."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

import convexlaw
from convexlaw.cli.batch import batch
from convexlaw.cli.demo import demo
from convexlaw.cli.design import design
from convexlaw.cli.fit import app as fit_app
from convexlaw.cli.plan import plan
from convexlaw.cli.predict import predict
from convexlaw.cli.read import read
from convexlaw.cli.repro import repro
from convexlaw.cli.slope import slope
from convexlaw.cli.tradeoff import tradeoff
from convexlaw.cli.train import train
from convexlaw.errors import ConvexlawError

app = typer.Typer(
    name="convexlaw",
    help="Convex theory for training runs and high-dimensional selection.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


# newer typers carry their own copy of click: the base of all usage errors is found through typer
_UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"convexlaw {convexlaw.__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (works anywhere on the line).")
    ] = False,
) -> None:
    """Hold the options that come before a command."""


app.command("batch")(batch)
app.command("demo")(demo)
app.command("design")(design)
app.add_typer(fit_app, name="fit")
app.command("plan")(plan)
app.command("predict")(predict)
app.command("read")(read)
app.command("repro")(repro)
app.command("slope")(slope)
app.command("tradeoff")(tradeoff)
app.command("train")(train)


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line; errors are one line on standard error with exit code 2.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program name; ``sys.argv[1:]`` without it.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [a for a in args if a != "--debug"]
    interrupted = _remember_interrupts()
    code: object = 0
    try:
        code = app(args=args, prog_name="convexlaw", standalone_mode=False)
    except _UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "convexlaw"
        typer.echo(f"error: {_line(error.format_message())} (see {command} --help)", err=True)
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except Exception as error:
        # a Ctrl-C inside compiled code comes out as another error
        if interrupted.is_set():
            code = 130
        else:
            if debug:
                traceback.print_exc()
            known = isinstance(error, ConvexlawError | OSError | ImportError)
            kind = "" if known else f"unexpected {type(error).__name__} (--debug shows where): "
            typer.echo(f"error: {kind}{_line(str(error))}", err=True)
            sys.exit(2)
    if code == 130:  # also what typer makes of Ctrl-C
        typer.echo("interrupted: files already written are whole, nothing half-written is left", err=True)
        # an interrupt that passed through exec() of a string is remembered until the next one, and would
        # make Python end by the signal instead of the exit code
        exec("")
    sys.exit(code if isinstance(code, int) else 0)


def _line(message: str) -> str:
    return " ".join(message.split())


def _remember_interrupts() -> threading.Event:
    """Make Ctrl-C leave a mark besides raising KeyboardInterrupt."""
    seen = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        seen.set()
        signal.default_int_handler(number, frame)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handle)
    return seen
