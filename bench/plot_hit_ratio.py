#!/usr/bin/env python3
"""Draws docs/hit-ratio.svg from the table of traces in weir/cache/README.md: to be run when the table has changed.

Left, the hit ratios of each row on one line, between LRU and the optimum; right, how many points Weir has more (or
less) than Caffeine and than the best of the others. Colours follow the reader's light or dark theme, shapes differ too.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "weir" / "cache" / "README.md"
PLOT = ROOT / "docs" / "hit-ratio.svg"

ROW, TOP, BOTTOM = 26, 92, 40
LABELS_END, LEFT_END = 132, 640  # of the left panel's labels, of its scale
RIGHT, RIGHT_END, WIDTH = 690, 930, 950

STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de } .ink { fill: #1f2328 } .dim { fill: #59636e } .grid { stroke: #d8dee4 }
  .axis { stroke: #8c959f } .weir-text { fill: #1a7f37 } .range { stroke: #d0d7de; stroke-width: 3 } .band { fill: #f6f8fa }
  .lru { fill: none; stroke: #6e7781; stroke-width: 1.6 } .optimum { stroke: #1f2328; stroke-width: 2 }
  .caffeine { fill: #0969da } .best { fill: #bc4c00 } .weir { fill: #1a7f37; stroke: #ffffff; stroke-width: 1 }
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }
  .title { font-size: 15px; font-weight: 600 } .number { font-variant-numeric: tabular-nums; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d } .ink { fill: #f0f6fc } .dim { fill: #9198a1 } .grid { stroke: #262c36 }
    .axis { stroke: #656c76 } .range { stroke: #3d444d } .band { fill: #151b23 }
    .weir-text { fill: #3fb950 } .lru { stroke: #9198a1 } .optimum { stroke: #f0f6fc }
    .caffeine { fill: #58a6ff } .best { fill: #f0883e } .weir { fill: #3fb950; stroke: #0d1117 }
  }
"""


def table():
    """[(trace, entries, lru, caffeine, best, weir, optimum)], the mean last."""
    rows = []
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) == 7 and re.fullmatch(r"[\d.]+", cells[2]):
            rows.append((cells[0], cells[1], *map(float, cells[2:])))
    if len(rows) < 2 or rows[-1][0] != "mean":
        raise SystemExit(f"{TABLE} has no table of traces that ends with their mean")
    return rows


def text(x, y, words, style="ink", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{words}</text>'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def lru(x, y):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" class="lru"/>'


def caffeine(x, y):
    """A triangle that stands above the line."""
    return f'<path d="M{x:.1f} {y - 1:.1f} l-4.5 -8 h9 z" class="caffeine"/>'


def best(x, y):
    """A triangle that hangs below it."""
    return f'<path d="M{x:.1f} {y + 1:.1f} l-4.5 8 h9 z" class="best"/>'


def weir(x, y):
    return f'<path d="M{x:.1f} {y - 5.5:.1f} l5.5 5.5 -5.5 5.5 -5.5 -5.5 z" class="weir"/>'


def optimum(x, y):
    return line(x, y - 7, x, y + 7, "optimum")


def ratio_at(percent):
    return LABELS_END + (LEFT_END - LABELS_END) * percent / 100


class Differences:
    """The right panel's scale: whole points that hold every difference."""

    def __init__(self, rows):
        values = [row[5] - other for row in rows for other in row[3:5]]
        self.low, self.high = int(min(values) // 1), int(-(-max(values) // 1))

    def at(self, points):
        return RIGHT + (RIGHT_END - RIGHT) * (points - self.low) / (self.high - self.low)

    def bars(self, row, y):
        _, _, _, of_caffeine, of_best, ours, _ = row
        for other, style, top in ((of_caffeine, "caffeine", y - 7), (of_best, "best", y + 1)):
            begin, end = sorted((self.at(0), self.at(ours - other)))
            yield f'<rect x="{begin:.1f}" y="{top:.1f}" width="{max(end - begin, 1):.1f}" height="6" class="{style}"/>'


def legend():
    entries = ((lru, "LRU", 0, 62), (caffeine, "Caffeine 3.3.1", 5, 122), (best, "the best of 7 others", -5, 152),
               (weir, "Weir", 0, 66), (optimum, "optimum (Belady)", 0, 0))
    x = 24
    for mark, name, lower, width in entries:
        yield mark(x, 52 + lower)
        yield text(x + 12, 56, name)
        x += width


def axes(differences, bottom):
    for percent in range(0, 101, 20):
        yield line(ratio_at(percent), TOP - 14, ratio_at(percent), bottom, "grid")
        yield text(ratio_at(percent), bottom + 16, f"{percent} %", "dim", "middle")
    for points in range(differences.low, differences.high + 1):
        yield line(differences.at(points), TOP - 14, differences.at(points), bottom, "axis" if points == 0 else "grid")
        yield text(differences.at(points), bottom + 16, f"{points:+d}" if points else "0", "dim", "middle")


def body(rows, differences):
    for number, row in enumerate(rows):
        trace, entries, of_lru, of_caffeine, of_best, ours, possible = row
        y = TOP + ROW * number
        yield text(LABELS_END - 12, y + 4, f"{trace} {entries}".strip(), "ink", "end")
        yield line(ratio_at(min(of_lru, of_caffeine, of_best, ours)), y, ratio_at(possible), y, "range")
        yield lru(ratio_at(of_lru), y)
        yield optimum(ratio_at(possible), y)
        yield caffeine(ratio_at(of_caffeine), y)
        yield best(ratio_at(of_best), y)
        yield weir(ratio_at(ours), y)
        yield text(LEFT_END + 8, y + 4, f"{ours:.1f}", "weir-text number")
        yield from differences.bars(row, y)


def plot(rows):
    differences = Differences(rows)
    bottom = TOP + ROW * (len(rows) - 1) + 14
    height = bottom + BOTTOM
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
           'aria-label="Hit ratios on 17 traces: Weir against LRU, Caffeine, the best of seven others, and the optimum">')
    yield f"<style>{STYLE}</style>"
    yield f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" class="card"/>'
    yield text(16, 28, "Hit ratio on real traces, by trace and entries", "ink title")
    yield text(RIGHT, 28, "Weir's lead in points over", "ink title")
    yield text(RIGHT, 56, "Caffeine", "caffeine") + text(RIGHT + 70, 56, "the best of 7 others", "best")
    yield from legend()
    yield f'<rect x="8" y="{bottom - ROW - 1:.1f}" width="{WIDTH - 16}" height="{ROW}" class="band"/>'
    yield from axes(differences, bottom)
    yield from body(rows, differences)
    yield "</svg>"


def main():
    PLOT.write_text("\n".join(plot(table())) + "\n")
    print(PLOT.relative_to(ROOT))


if __name__ == "__main__":
    main()
