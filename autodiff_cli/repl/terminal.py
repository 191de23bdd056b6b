"""The line editor: keys, colours, history, completion and the live hint, by prompt_toolkit.

The prompt comes first: NumPy and the language are imported in a thread while the user types. Only
this module and `history` import prompt_toolkit, and only a terminal imports them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus, to_filter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.lexers import DynamicLexer, Lexer, PygmentsLexer
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.styles import Style

from ..language.syntax.parser import is_incomplete
from ..outside import OUTSIDE
from .commands.editor import edit_in_editor
from .history import open_history
from .pasted import without_prompts
from .words import LEAVE, Hint, banner

if TYPE_CHECKING:
    from .loop import Loop

DEBOUNCE = 0.06  # seconds without a key until the hint is computed
REST = 0.4  # seconds until what is wrong with the line is said
# Numbers and operators are what an input is about: not greyed as they are by default.
STYLE = Style.from_dict({
    "bottom-toolbar": "noreverse", "bottom-toolbar.error": "noreverse",
    "pygments.literal.number": "fg:default", "pygments.operator": "fg:default",
})  # fmt: skip


def converse(
    make: Callable[[], Loop],
    quiet: bool,
    preloaded: bool,
    variables: dict[str, str],
    typed: str = "",
) -> int:
    """Read and run until the user leaves; the exit code. `preloaded`: making the session prints
    something, so that has to come before the first prompt; `typed` stands on its line."""
    terminal = Terminal(make, quiet, variables)
    terminal.typed = typed
    if preloaded:
        terminal.make_now()
    return terminal.run()


class Terminal:
    """One session at a terminal."""

    def __init__(self, make: Callable[[], Loop], quiet: bool, variables: dict[str, str]):
        self.make = make
        self.quiet = quiet
        self.variables = variables
        self.lock = threading.RLock()  # held by whoever runs something in the session
        self.made: Loop | None = None
        self.loader: threading.Thread | None = None
        self.lexer: Lexer | None = None
        self.interrupted_text = ""
        self.typed = ""
        self.colors = not variables.get("NO_COLOR")
        self.prompt: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation=self._continuation,
            history=open_history(variables),
            enable_history_search=True,
            auto_suggest=AutoSuggestFromHistory(),
            completer=SessionCompleter(self),
            complete_while_typing=False,
            lexer=DynamicLexer(lambda: self.lexer),
            key_bindings=self._keys(),
            bottom_toolbar=self._toolbar,
            style=STYLE,
            color_depth=None if self.colors else ColorDepth.DEPTH_1_BIT,
        )
        editor = self.prompt.layout.current_window  # the hint stands right below it
        editor.dont_extend_height = to_filter(True)
        self.hinter = Hinter(self)
        self.prompt.default_buffer.on_text_changed += lambda _: self.hinter.ask()
        self.prompt.app.after_render += lambda _: self._load()

    # -- the session --------------------------------------------------------------------------

    @property
    def loop(self) -> Loop:
        """The session; waits until it is there."""
        if self.made is None:
            self._load()
            assert self.loader is not None
            self.loader.join()
            assert self.made is not None
        return self.made

    def _load(self) -> None:
        """Begin to make the session, once, while the user types."""
        if self.loader is None:
            self.loader = threading.Thread(target=self._make, daemon=True)
            self.loader.start()

    def _make(self) -> None:
        loop = self.make()
        loop.around.edit = lambda text: edit_in_editor(text, self.variables)
        loop.around.history = lambda: self.prompt.history.get_strings()
        if isinstance(self.prompt.history, InMemoryHistory):
            for text in loop.inputs:  # of a process before this one
                self.prompt.history.append_string(text)
        if self.colors:
            from .lexer import ExprLexer

            self.lexer = PygmentsLexer(ExprLexer)
        self.made = loop
        from . import complete, hints  # noqa: F401  # so that the first TAB need not wait

        self.hinter.ask()

    def make_now(self) -> None:
        """Make the session before the first prompt."""
        self.loader = threading.current_thread()
        self._make()

    # -- reading ------------------------------------------------------------------------------

    def run(self) -> int:
        """Prompt, run, again."""
        if not self.quiet:
            print(banner(self._names(), get_terminal_size().columns), flush=True)
        default = self.typed
        while True:
            self.hinter.ask()  # what is below the last line is not about the next one
            try:
                text = self.prompt.prompt(self._prompt(), default=default)
            except KeyboardInterrupt:
                default = ""
                if not self.interrupted_text.strip():
                    print(LEAVE, flush=True)
                continue
            except EOFError:
                return 0
            except OSError:  # the terminal was closed
                return 0
            default = ""
            if not text.strip():
                continue
            try:
                with self.lock:
                    reply = self.loop.feed(f"{text}\n\n" if "\n" in text else text, complete=True)
            except KeyboardInterrupt:
                print("interrupted; the session is as it was", flush=True)
                continue
            if reply.status == "quit":
                return 0
            default = reply.suggestion

    def _names(self) -> str:
        return "names: none yet" if self.made is None else self.made.status_line()

    def _prompt(self) -> str:
        return "ad> " if self.made is None else self.made.settings.prompt

    def _continuation(self, width: int, line_number: int, wrap_count: int) -> str:
        return (" " * width) if wrap_count else " .. ".rjust(width)[-width:]

    def _toolbar(self) -> StyleAndTextTuples | None:
        found = self.hinter.shown
        if not found.text:
            return None
        style = "class:bottom-toolbar.error" if found.error else "class:bottom-toolbar"
        line = "─" if self.loop.look.unicode else "-"
        return [(style, f" {line} {found.text} {line} ")]

    # -- keys ---------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        editing = has_focus(DEFAULT_BUFFER)

        @Condition
        def completing() -> bool:
            state = self.prompt.default_buffer.complete_state
            return state is not None and state.current_completion is not None

        @keys.add("enter", filter=editing & ~completing)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if self._needs_more(buffer.text):
                buffer.newline()
                if buffer.document.lines[buffer.document.cursor_position_row - 1].endswith(":"):
                    buffer.insert_text("    ")
            else:
                buffer.validate_and_handle()

        @keys.add("enter", filter=editing & completing)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.complete_state = None

        @keys.add("escape", "enter", filter=editing)
        @keys.add("escape", "c-j", filter=editing)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.newline()

        @keys.add("c-c", filter=editing)
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            self.interrupted_text = event.app.current_buffer.text
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

        @keys.add(Keys.BracketedPaste, filter=editing)
        def _(event: KeyPressEvent) -> None:
            text = event.data.replace("\r\n", "\n").replace("\r", "\n")
            event.current_buffer.insert_text(without_prompts(text).rstrip("\n"))

        return keys

    def _needs_more(self, text: str) -> bool:
        stripped = without_prompts(text).lstrip()
        if not stripped or stripped.startswith((":", "%", "?")) or stripped.rstrip()[-1] == "?":
            return False
        return is_incomplete(f"{without_prompts(text)}\n")


class SessionCompleter(Completer):
    """Completion from the session's tables."""

    def __init__(self, terminal: Terminal):
        self.terminal = terminal

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Candidates for the word before the cursor."""
        from .complete import candidates

        loop = self.terminal.loop
        with self.terminal.lock:
            found = candidates(document.text_before_cursor, loop)
        for one in found:
            yield Completion(one.text, -one.length, display_meta=one.about)


class Hinter:
    """Computes the hint in a thread of its own, a little after the last key."""

    def __init__(self, terminal: Terminal):
        self.terminal = terminal
        self.shown = Hint()
        self.wanted = threading.Event()
        self.changed = 0.0
        self.worker: threading.Thread | None = None

    def ask(self) -> None:
        """The line changed."""
        self.changed = time.monotonic()
        if self.shown.text:
            self.shown = Hint()
        if self.worker is None:
            self.worker = threading.Thread(target=self._work, daemon=True)
            self.worker.start()
        self.wanted.set()

    def _work(self) -> None:
        while True:
            self.wanted.wait()
            self.wanted.clear()
            while (rest := self.changed + DEBOUNCE - time.monotonic()) > 0:
                time.sleep(rest)
            at = self.changed
            found = self._compute()
            if found.error:
                while (rest := at + REST - time.monotonic()) > 0 and self.changed == at:
                    time.sleep(min(rest, DEBOUNCE))
            if self.changed == at:
                self.shown = found
                self.terminal.prompt.app.invalidate()

    def _compute(self) -> Hint:
        loop = self.terminal.made
        buffer = self.terminal.prompt.default_buffer
        if loop is None or not loop.settings.hint:
            return Hint()
        from .hints import hint

        OUTSIDE.record("typing", buffer.text)
        with suppress(Exception), self.terminal.lock:  # a hint is never worth a failure
            return hint(buffer.text, buffer.cursor_position, loop)
        return Hint()
