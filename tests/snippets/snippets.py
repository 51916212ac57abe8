#!/usr/bin/env python3
"""The code in the documents. usage: snippets.py source DOCUMENT FRAMES OUT | same DOCUMENT DOCUMENT

source  Writes a C++ source of the document's ```cpp blocks. A block with a main() is a program and compiles as it is.
        Other blocks are fragments: those of a document are put, in their order, where its frame says `// SNIPPET`;
        their #include lines go to the top. The frame, FRAMES/NAME.cc, is what the document takes as given; NAME is the
        document's own, or its folder's for a README. Without blocks the source is empty.
same    Whether two documents have the same code, whatever their comments say. Exit code 1 and the differences if not.
"""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = re.compile(r"^ *// SNIPPET\n", re.M)
COMMENT = re.compile(r"(^|\s)\s*(#|//)(\s.*)?$")


def blocks(path: pathlib.Path) -> list[tuple[int, list[str]]]:
    """The ```cpp blocks: the number of the first line, and the lines."""
    found, inside = [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if inside is None and line.strip() == "```cpp":
            inside = (number + 1, [])
        elif inside is not None and line.strip() == "```":
            found.append(inside)
            inside = None
        elif inside is not None:
            inside[1].append(line)
    if inside is not None:
        sys.exit(f"{path}:{inside[0]}: the block doesn't end")
    return found


def at(path: pathlib.Path, line: int) -> str:
    return f'#line {line} "{path.relative_to(ROOT)}"\n'


def source(document: pathlib.Path, frames: pathlib.Path) -> str:
    code = blocks(document)
    if any(re.search(r"\bint main\(", "\n".join(lines)) for _, lines in code):
        if len(code) > 1:
            sys.exit(f"{document}: one program, or fragments: not both, nor several")
        return at(document, code[0][0]) + "\n".join(code[0][1]) + "\n"
    if not code:
        return ""
    frame = frames / f"{document.parent.name if document.stem == 'README' else document.stem}.cc"
    if not frame.exists():
        sys.exit(f"{document}:{code[0][0]}: a fragment needs a frame, {frame}")
    before, after = PLACE.split(frame.read_text())
    includes, body = "", ""
    for first, lines in code:
        is_include = [line.startswith("#include") for line in lines]
        includes += "".join(line + "\n" for line, hoist in zip(lines, is_include) if hoist)
        body += at(document, first) + "".join(("" if hoist else line) + "\n" for line, hoist in zip(lines, is_include))
    return includes + at(frame, 1) + before + body + at(frame, before.count("\n") + 2) + after


def code_of(path: pathlib.Path) -> list[str]:
    """The lines of all code, fenced and indented, without comments."""
    found, fenced, before = [], False, ""
    for line in path.read_text().splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or (line.startswith("    ") and (before == "" or before.startswith("    "))):
            found.append(COMMENT.sub("", line).rstrip())
        before = line
    return found


def main(arguments: list[str]) -> int:
    match arguments:
        case ["source", document, frames, out]:
            pathlib.Path(out).write_text(source(pathlib.Path(document), pathlib.Path(frames)))
            return 0
        case ["same", one, other]:
            differences = list(difflib.unified_diff(*(code_of(pathlib.Path(path)) for path in (one, other)), one, other,
                                                    lineterm=""))
            print("\n".join(differences))
            return 1 if differences else 0
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
