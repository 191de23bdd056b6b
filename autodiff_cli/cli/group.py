"""click's side of the commands: the lazy group, commands made from option tables, usage errors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import click

from ..errors import Exit
from ..render.text import WORD, printable
from ..suggest import did_you_mean, suggest
from .dispatch import COMMANDS, load_command
from .options import SECTIONS, Command, Option
from .streams import Environment


class Converted(click.ParamType):
    """click's wrapping of a converter of the option table."""

    name = "text"

    def __init__(self, option: Option):
        self.option = option
        self.convert_text = option.convert

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.convert_text(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> Any:
        from .commands.completion import of_option

        return of_option(self.option, ctx, incomplete)


class Formatter(click.HelpFormatter):
    """Help in which the text of an option stands below it where beside it is little room."""

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        rows = list(rows)
        narrow = self.width < 60 and max(len(first) for first, _ in rows) > 12
        super().write_dl(rows, 4 if narrow else col_max, col_spacing)


class Context(click.Context):
    """A context whose help is laid out by `Formatter`."""

    formatter_class = Formatter


class Subcommand(click.Command):
    """A subcommand; its help has its options in sections, those of the engine at the end."""

    context_class = Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        heads = {key: head for head, keys in SECTIONS.items() for key in keys}
        parts: dict[str, list[tuple[str, str]]] = {head: [] for head in ("Options", *SECTIONS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                parts[heads.get(param.name or "", "Options")].append(record)
        for head, rows in parts.items():
            if rows:
                with formatter.section(head):
                    formatter.write_dl(rows)


class LazyGroup(click.Group):
    """Subcommands are imported when they are called; listing them imports nothing."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return make_command(load_command(cmd_name)) if cmd_name in COMMANDS else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> Any:
        """Commands and options; else a file, which is run."""
        from .commands.completion import files

        found = super().shell_complete(ctx, incomplete)
        return found or files(incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().obj.write(ctx.get_help() + "\n")
        ctx.exit()


def help_option() -> click.Option:
    return click.Option(
        ["-h", "--help"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        help="Show this message.",
        callback=_show_help,
    )


def click_option(option: Option) -> click.Option:
    """An option of the table as click knows it."""
    declared = [option.key, *option.flags]
    if not option.metavar:
        return click.Option(declared, is_flag=True, help=option.help)
    return click.Option(
        declared,
        metavar=option.metavar,
        type=Converted(option),
        multiple=option.repeat,
        default=option.default,
        help=option.help,
        callback=_together if option.joined else None,
    )


def _together(ctx: click.Context, param: click.Parameter, value: Any) -> tuple[str, ...]:
    """The words of all values of an option."""
    return tuple(chain.from_iterable(value))


def make_command(command: Command) -> click.Command:
    """A command from its table."""
    key, metavar = command.arguments

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from .commands.completion import of_argument

        return of_argument(key, incomplete)

    @click.pass_context
    def invoke(ctx: click.Context, /, **values: Any) -> int:
        return command.call(values, list(values.pop(key)), ctx.find_root().obj)

    return Subcommand(
        command.name,
        params=[
            click.Argument([key], nargs=-1, metavar=metavar, shell_complete=complete),
            *map(click_option, command.options),
            help_option(),
        ],
        callback=invoke,
        help=command.description,
        epilog="\b\nExamples:\n" + command.examples,
    )


def make_group() -> LazyGroup:
    """All commands."""
    return LazyGroup(
        "autodiff",
        params=[help_option(), click.Option(["--version"], is_flag=True, help="Show the version.")],
        help="Values and gradients of expressions, with PyTorch's names and semantics.",
        epilog="\b\nExamples:\n"
        "  autodiff demo.expr\n"
        "  autodiff run -e 'x = 3; loss = x**2 + sin(x)'\n"
        "  autodiff help E302\n",
    )


def run_group(words: list[str], env: Environment) -> int:
    """Run a command line through click; the exit code."""
    group = make_group()
    width = min(100, env.width(env.stdout))
    try:
        result = group.main(
            args=words, prog_name="autodiff", standalone_mode=False, obj=env,
            max_content_width=width, terminal_width=width,
        )  # fmt: skip
    except click.ClickException as error:
        return _usage(error, words[0], env)
    except click.Abort:
        raise KeyboardInterrupt from None
    return Exit.OK if result is None else int(result)


def _usage(error: click.ClickException, command: str, env: Environment) -> int:
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    context = getattr(error, "ctx", None)
    hints = []
    if isinstance(error, click.NoSuchOption):
        message = f"there is no option `{printable(error.option_name, WORD)}`"
        params = [] if context is None else context.command.params
        known = ["--version", *(flag for param in params for flag in param.opts)]
        word = error.option_name.lstrip("-")
        options = load_command(command).options if command in COMMANDS else ()
        valued = [o.flags[-1] for o in options if word in getattr(o.convert, "words", ())]
        close = [f"{flag} {word}" for flag in valued]
        close += suggest(error.option_name, [f for f in known if f.startswith("--")])
        hints += did_you_mean(close[:3])
    path = f"autodiff {command}" if command in COMMANDS else "autodiff"
    hints.append(f"`{path} --help` lists the options")
    env.complain(printable(message), *hints)
    return Exit.USAGE
