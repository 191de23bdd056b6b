"""From tokens to the tree: the LALR driver, recovery after errors, and what the REPL asks.

The driver keeps its own stack, so that no text can exhaust Python's. The tables come from
`grammar/expr.lark`; lark itself is not needed here.
"""

from __future__ import annotations

import zlib
from binascii import a2b_base64
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from ...errors import AutodiffError, fault
from ...source import Source
from .actions import Builder
from .grammar import TABLES as tables
from .lexer import tokenize
from .scoping import PLACED, misplaced
from .tokens import DEDENT, END, ERROR, INDENT, KIND, NEWLINE, TERMINALS, Tokens
from .tree import Module

# What only continues a statement.
_PARTS = frozenset(KIND[name] for name in ("ELSE", "ELIF", "EXCEPT", "FINALLY"))

MAX_STACK = 4000
MAX_ERRORS = 20


class _Rows(dict[int, dict[int, int]]):
    """The rows of a table by state, each decoded when it is first needed."""

    def __init__(self, text: str):
        super().__init__()
        data = zlib.decompress(a2b_base64(text))
        flat = memoryview(data).cast("h")
        count = flat[0]
        self.flat = flat
        self.starts = list(accumulate(flat[1 : count + 1], initial=count + 1))

    def __missing__(self, state: int) -> dict[int, int]:
        start, end = self.starts[state], self.starts[state + 1]
        middle = (start + end) // 2
        row = dict(zip(self.flat[start:middle], self.flat[middle:end], strict=True))
        self[state] = row
        return row


ACTIONS = _Rows(tables.ACTIONS)
"""For each state: terminal -> the state to shift to, or -1 - the rule to reduce by."""
GOTOS = _Rows(tables.GOTOS)
"""For each state: nonterminal -> the state after it."""
_SIZES = list(map(int, tables.RULE_SIZES.split()))
_ORIGINS = list(map(int, tables.RULE_ORIGINS.split()))
_METHODS = tables.RULE_ACTIONS.split()
_NONTERMINALS = tables.NONTERMINALS.split()
_MODULE = _NONTERMINALS.index("module")
_COMPOUND = _NONTERMINALS.index("compound")
_STATEMENTS = _NONTERMINALS.index("statements")
_PASS_THROUGH = [name == "-" for name in _METHODS]
_RULES: list[tuple[int, int, Callable[..., Any] | None]] = [
    (size, origin, None if name == "-" else getattr(Builder, name))
    for size, origin, name in zip(_SIZES, _ORIGINS, _METHODS, strict=True)
]
_ENDING = 1 << 14
"""Added to the state to shift to where the terminal may be a whole symbol, such as a name."""


class _Memo(dict[int, Any]):
    """What a function finds for a state and one or two symbols, packed in 7 bits each."""

    def __init__(self, find: Callable[[int], Any]):
        super().__init__()
        self.find = find

    def __missing__(self, key: int) -> Any:
        found = self[key] = self.find(key)
        return found


def _step(state: int, kind: int) -> int:
    """The action of a state before a terminal, as in ACTIONS, with what `_ENDING` says."""
    action = ACTIONS[state].get(kind, 0)
    if action > 0 and any(a < 0 and _SIZES[~a] == 1 for a in ACTIONS[action].values()):
        return action + _ENDING
    return action


def _symbol(state: int, kind: int, following: int) -> tuple[int, tuple[Callable[..., Any], ...]]:
    """Of a state, a terminal and the one after it: the state behind the largest symbol that the
    first terminal alone is, and the actions that make it."""
    target = ACTIONS[state][kind]
    actions = []
    while (action := ACTIONS[target].get(following, 0)) < 0 and _SIZES[~action] == 1:
        _, origin, method = _RULES[~action]
        if method is not None:
            actions.append(method)
        target = GOTOS[state][origin]
    return target, tuple(actions)


def _jump(state: int, nonterminal: int, kind: int) -> int:
    """Where a nonterminal leads from a state before a terminal, unit reductions done."""
    target = GOTOS[state][nonterminal]
    while True:
        action = ACTIONS[target].get(kind, 0)
        if action >= 0 or not _PASS_THROUGH[-1 - action]:
            return target
        nonterminal = _ORIGINS[-1 - action]
        target = GOTOS[state][nonterminal]


_steps = _Memo(lambda key: _step(key >> 7, key & 127))
_symbols = _Memo(lambda key: _symbol(key >> 14, key >> 7 & 127, key & 127))
_jumps = _Memo(lambda key: _jump(key >> 14, key >> 7 & 127, key & 127))


class SyntaxProblem(Exception):
    """The tokens do not fit the grammar at token `index`."""

    def __init__(self, index: int):
        super().__init__(index)
        self.index = index


class Machine:
    """The state of one parse: stacks of states, values and starts, and the next token."""

    def __init__(self, tokens: Tokens):
        self.tokens = tokens
        self.builder = Builder(tokens)
        self.states = [0]
        self.values: list[Any] = []
        self.begins: list[int] = []
        self.index = 0
        self.restarted = 0  # the last line from which it read again

    def run(self) -> Module:
        """Parse to the end; AutodiffError of a wrong token or node, SyntaxProblem otherwise."""
        states, values, begins = self.states, self.values, self.begins
        tokens, builder = self.tokens, self.builder
        kinds, starts, ends = tokens.kinds, tokens.starts, tokens.ends
        if tokens.refused is not None:
            raise tokens.refused
        steps, rules, jumps, symbols = _steps, _RULES, _jumps, _symbols
        index, state = self.index, states[-1]
        try:
            while True:
                kind = kinds[index]
                while True:
                    action = steps[state << 7 | kind]
                    if action >= 0:
                        break
                    size, origin, method = rules[~action]
                    if size == 1:
                        arguments = [values[-1]]
                    elif size:
                        arguments = values[-size:]
                        at = 1 - size
                        del values[at:], states[at:], begins[at:]
                    else:
                        arguments = []
                        values.append(None)
                        states.append(state)
                        begins.append(starts[index])
                    # What is made takes the place of its first symbol.
                    if method is not None:
                        values[-1] = method(
                            builder, arguments, begins[-1], ends[index - 1] if index else 0
                        )
                    if origin == _MODULE:
                        return values[-1]
                    states[-1] = state = jumps[(states[-2] << 7 | origin) << 7 | kind]
                if action == 0:
                    raise SyntaxProblem(index)
                value, start = index, starts[index]
                index += 1
                if action >= _ENDING:
                    action, actions = symbols[(state << 7 | kind) << 7 | kinds[index]]
                    for method in actions:
                        value = method(builder, [value], start, ends[index - 1])
                state = action
                states.append(action)
                values.append(value)
                begins.append(start)
                if len(states) > MAX_STACK:
                    raise fault("E108 nested-too-deep", span=tokens.span(index - 1))
        finally:
            self.index = index

    def accepts(self, kind: int) -> bool:
        """Whether a token of this kind would fit now; reductions alone do not tell."""
        states = list(self.states)
        while True:
            action = ACTIONS[states[-1]].get(kind, 0)
            if action >= 0:
                return action > 0
            size, origin = _SIZES[-1 - action], _ORIGINS[-1 - action]
            if origin == _MODULE:
                return True
            if size:
                del states[-size:]
            states.append(GOTOS[states[-1]][origin])

    # ---- recovery -------------------------------------------------------------------------

    def statement_state(self) -> None:
        """Drop what is unfinished, back to where a statement may begin."""
        while _COMPOUND not in GOTOS[self.states[-1]]:
            self.states.pop()
            self.values.pop()
            self.begins.pop()
        state = self.states[-1]
        if _STATEMENTS in GOTOS[state]:
            self.states.append(GOTOS[state][_STATEMENTS])
            self.values.append([])
            self.begins.append(self.tokens.starts[self.index])

    def next_statement(self) -> bool:
        """Go on after a node that was refused, which may be a whole block read to its end."""
        if self.index and self.tokens.kinds[self.index - 1] in (NEWLINE, DEDENT):
            self.statement_state()
            return True
        return self.skip_line()

    def skip_line(self) -> bool:
        """Go on after the logical line of the next token; False at the end of the text.

        A block that belongs to the line stays, as statements of the block around it.
        """
        kinds = self.tokens.kinds
        if kinds[self.index] == INDENT:
            self.drop_block(self.index)
        else:
            try:
                self.index = kinds.index(NEWLINE, self.index) + 1
            except ValueError:
                return False
            if kinds[self.index] == INDENT:
                self.drop_block(self.index)
        self.statement_state()
        return True

    def drop_block(self, index: int) -> None:
        """Remove an INDENT and its DEDENT."""
        kinds = self.tokens.kinds
        depth = 0
        for at in range(index, len(kinds)):
            if kinds[at] == INDENT:
                depth += 1
            elif kinds[at] == DEDENT:
                depth -= 1
                if depth == 0:
                    self.tokens.remove(at)
                    break
        self.tokens.remove(index)

    def restart(self, offset: int) -> None:
        """Read again from a line that an unclosed bracket has swallowed.

        The tokens before stay: an open `def` or `if` on the stack knows them by number.
        """
        self.restarted = offset
        indents = [(0, 0)]
        tokens = self.tokens
        for at in range(self.index):
            if tokens.kinds[at] == INDENT:
                column: Any = tokens.values[at]
                tab_column = tokens.ends[at] - tokens.starts[at]
                indents.append((column, tab_column))
            elif tokens.kinds[at] == DEDENT:
                indents.pop()
        fresh = tokenize(tokens.source, offset, tuple(indents))
        end = tokens.ends[self.index - 1]
        tokens.kinds[self.index :] = [NEWLINE, *fresh.kinds]
        tokens.starts[self.index :] = [end, *fresh.starts]
        tokens.ends[self.index :] = [end, *fresh.ends]
        tokens.values[self.index :] = [None, *fresh.values]
        self.index += 1
        self.statement_state()


def _error_of(problem: SyntaxProblem, machine: Machine) -> AutodiffError:
    tokens = machine.tokens
    if tokens.kinds[problem.index] == ERROR:
        error = tokens.values[problem.index]
        assert isinstance(error, AutodiffError)
        return error
    from .errors.syntax_errors import explain

    expected = {TERMINALS[kind] for kind in ACTIONS[machine.states[-1]] if machine.accepts(kind)}
    return explain(tokens, problem.index, expected)


def parse(source: Source) -> Module:
    """The tree of a program. Raises the AutodiffError of the first thing that is wrong."""
    machine = Machine(tokenize(source))
    try:
        module = machine.run()
    except SyntaxProblem as problem:
        raise _error_of(problem, machine) from None
    if not PLACED.isdisjoint(machine.tokens.kinds):
        for error in misplaced(module):
            raise error
    return module


def parse_all(source: Source) -> tuple[Module | None, list[AutodiffError]]:
    """The tree, or None and up to 20 independent errors in the order of the text."""
    machine = Machine(tokenize(source))
    errors: list[AutodiffError] = []
    while len(errors) < MAX_ERRORS:
        try:
            module = machine.run()
        except AutodiffError as error:
            errors.append(error)
            going = machine.tokens.refused is None and machine.next_statement()
        except SyntaxProblem as problem:
            found = _error_of(problem, machine)
            if not (errors and machine.tokens.kinds[problem.index] in _PARTS):
                errors.append(found)
            going = _recover(machine, problem.index, found)
        else:
            if not errors:
                errors = list(misplaced(module))[:MAX_ERRORS]
            return (None if errors else module), errors
        if not going:
            break
    errors.sort(key=lambda error: error.span.start if error.span else 0)
    return None, errors


def _recover(machine: Machine, index: int, error: AutodiffError) -> bool:
    """Go on after an error: at the line that an unclosed bracket swallowed, or the next line."""
    tokens = machine.tokens
    if error.code == "E101" and tokens.kinds[index] != ERROR:
        offset = tokens.starts[index]
        line_start = offset + 1 - tokens.span(index).column
        if tokens.kinds[index] == END:
            return False
        if tokens.starts[index - 1] >= line_start or line_start <= machine.restarted:
            return machine.skip_line()
        machine.restart(line_start)
        return True
    return machine.skip_line()


def is_incomplete(text: str) -> bool:
    """Whether a program is cut off: an open bracket, string or block, or a `\\` at the end.

    A block counts as open until an empty line ends it, as at Python's own prompt.
    """
    stripped = text.rstrip(" \t\r\n")
    if stripped.endswith("\\") and text.count("\n", len(stripped)) <= 1:
        return True
    tokens = tokenize(Source(text, "<input>"))
    machine = Machine(tokens)
    try:
        machine.run()
    except SyntaxProblem as problem:
        return _cut_off(tokens, problem.index, text)
    except AutodiffError:
        return False
    return _open_block(tokens, text)


def _cut_off(tokens: Tokens, index: int, text: str) -> bool:
    kinds = tokens.kinds
    if kinds[index] == ERROR:
        return tokens.open_at_end and index == len(kinds) - 2 - len(tokens.indents)
    if kinds[index] == END:
        return tokens.open_at_end or kinds[index - 1] in (NEWLINE, DEDENT)
    at_end = all(kind in (DEDENT, END) for kind in kinds[index:])
    return at_end and not text.endswith("\n\n")


def _open_block(tokens: Tokens, text: str) -> bool:
    kinds = tokens.kinds
    last_line = text.removesuffix("\n").rpartition("\n")[2]
    return kinds[-2:-1] == [DEDENT] and bool(last_line.strip())
