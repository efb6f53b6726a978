#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes a copy of the sources with mutants in it: a condition that is negated, a statement that is left out.

    tests/mutation/mutate.py COMPILE_COMMANDS SOURCE COPY

SOURCE/src/{plan,memory,exec,tree,session} are read with libclang, with the flags of compile_commands.json. In COPY,
each place where a mutant can be is a macro of mutation_points.h with the number of the mutant. COPY/mutants.json lists
them. Conditions of `if` and `while`, and statements that are calls or assignments, are such places; those that come out
of macros are not.
"""
import json
import pathlib
import re
import shutil
import sys

from clang.cindex import CursorKind, Index

HERE = pathlib.Path(__file__).resolve().parent
LAYERS = ("plan", "memory", "exec", "tree", "session")
# Statements without an effect on results: asserts and invariants, messages, traces; and locks, which the thread
# sanitizer looks after.
NO_EFFECT = re.compile(r"^\(void\)|^(assert|[A-Z_]+|rondo_log\w*|rondo_trace_\w+|rondo_\w*_check|\w+_(un)?lock)\b")


def find_places(cursor, path, text, places):
    """Appends (offset, end, kind) of each place below a cursor, outer ones before inner ones."""
    for child in cursor.get_children():
        if child.location.file is not None and child.location.file.name != path:
            continue
        if cursor.kind == CursorKind.TRANSLATION_UNIT and child.kind != CursorKind.FUNCTION_DECL:
            continue
        if child.kind in (CursorKind.IF_STMT, CursorKind.WHILE_STMT):
            add_condition(child, text, places)
        if cursor.kind in (CursorKind.COMPOUND_STMT, CursorKind.IF_STMT, CursorKind.FOR_STMT):
            add_statement(cursor, child, text, places)
        find_places(child, path, text, places)


def add_condition(statement, text, places):
    condition = next(iter(statement.get_children()))
    start, end = condition.extent.start.offset, condition.extent.end.offset
    before = text[statement.extent.start.offset : start].decode()
    if re.fullmatch(r"(if|while) \(", before) and text[end : end + 1] == b")":
        places.append((start, end, "condition"))


def add_statement(parent, statement, text, places):
    kinds = (CursorKind.CALL_EXPR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR, CursorKind.BINARY_OPERATOR,
             CursorKind.UNARY_OPERATOR)
    if statement.kind not in kinds:
        return
    start, end = statement.extent.start.offset, statement.extent.end.offset
    source = text[start:end].decode()
    # The children of an `if` or `for` that are expressions are statements only if a semicolon ends them, and the
    # condition and the parts of a `for` begin behind a parenthesis or a semicolon.
    before = text[:start].rstrip()[-1:]
    is_part = parent.kind != CursorKind.COMPOUND_STMT and (before in (b"(", b";") or not before)
    if not is_part and text[end : end + 1] == b";" and not NO_EFFECT.match(source):
        places.append((start, end, "statement"))


def rewrite(text, places, first_number):
    """Returns the text with the macros around the places. They nest, so each is two insertions."""
    insertions = []
    for number, (start, end, kind) in enumerate(places, first_number):
        insertions.append((start, 1, -end, f"RONDO_MUTATED_{kind.upper()}({number}, "))
        insertions.append((end, 0, -start, ")"))
    pieces, last = [f'#include "{HERE}/mutation_points.h"\n#line 1\n'.encode()], 0
    for offset, _, _, inserted in sorted(insertions):
        pieces += [text[last:offset], inserted.encode()]
        last = offset
    return b"".join(pieces + [text[last:]])


def main():
    commands, source, copy = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    flags = {}
    for entry in json.loads(commands.read_text()):
        words = entry["command"].split()
        flags.setdefault(entry["file"], [word for word in words if re.match(r"-[IDfs]|-std", word)])
    left_out = (source / "build", source / ".git")
    shutil.copytree(source, copy, ignore=lambda folder, names: [
        name for name in names if pathlib.Path(folder) / name in left_out], dirs_exist_ok=True)

    mutants = []
    index = Index.create()
    for layer in LAYERS:
        for path in sorted((source / "src" / layer).rglob("*.c")):
            if path.name.endswith("_check.c"):  # invariants: without a mistake elsewhere, nothing depends on them
                continue
            text = path.read_bytes()
            unit = index.parse(str(path), args=flags.get(str(path), []))
            errors = [str(each) for each in unit.diagnostics if each.severity >= 3]
            if errors:
                sys.exit(f"mutate.py: libclang does not compile {path}: {errors[0]}")
            places = []
            find_places(unit.cursor, str(path), text, places)
            name = path.relative_to(source)
            (copy / name).write_bytes(rewrite(text, places, len(mutants)))
            for start, end, kind in places:
                mutants.append({"layer": layer, "file": str(name), "line": text.count(b"\n", 0, start) + 1,
                                "kind": kind,
                                "text": text[start:end].decode()})
    (copy / "mutants.json").write_text(json.dumps(mutants, indent=1))
    print(f"{len(mutants)} mutants")


if __name__ == "__main__":
    main()
