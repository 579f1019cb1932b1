#!/usr/bin/env python3
"""What a terminal shows, as a picture: `tmux capture-pane -e -p` comes in, SVG goes out.

The sixteen colours of the terminal follow the page's theme, dark or light; all others are as they were sent. Blocks and
lines are drawn, not written, so that they meet whatever font is there.
"""

import re
import sys
from xml.sax.saxutils import escape

WIDE, HIGH, SIZE = 8, 17, 13  # of a cell, and of its letters
DARK = "0d1117 d5dae0 30363d ff7b72 3fb950 d29922 58a6ff bc8cff 39c5cf b1bac4".split()
LIGHT = "ffffff 1f2328 24292f cf222e 1a7f37 9a6700 0969da 8250df 3192aa 6e7781".split()
NAMES = "bg fg black red green yellow blue magenta cyan white".split()
EIGHTHS = {c: i + 1 for i, c in enumerate("▁▂▃▄▅▆▇█")}
LEFT = {c: 7 - i for i, c in enumerate("▉▊▋▌▍▎▏")}
# Which ways a line goes from the middle: left, right, up, down.
LINES = {"─": "lr", "│": "ud", "╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu", "├": "rud", "┤": "lud",
         "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "┬": "lrd", "┴": "lru", "┼": "lrud", "━": "lr", "┃": "ud"}
SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}


def color(number):
    """One of the 256."""
    if number < 16:
        return NAMES[2 + number % 8]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    level = [0, 95, 135, 175, 215, 255]
    number -= 16
    return "#%02x%02x%02x" % (level[number // 36], level[number // 6 % 6], level[number % 6])


def styled(style, codes):
    """The style after a sequence of codes."""
    style, codes = dict(style), [int(c or 0) for c in codes.replace(":", ";").split(";")]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = {}
        elif code in (38, 48):
            kind = codes.pop(0)
            value = color(codes.pop(0)) if kind == 5 else "#%02x%02x%02x" % tuple(codes.pop(0) for _ in "rgb")
            style["fg" if code == 38 else "bg"] = value
        elif 30 <= code % 60 <= 37 and code < 98:
            style["fg"] = NAMES[2 + code % 10]
        elif 40 <= code % 60 <= 47 and code < 108:
            style["bg"] = NAMES[2 + code % 10]
        elif code in (39, 49):
            style.pop("fg" if code == 39 else "bg", None)
        else:
            on = {1: "bold", 2: "dim", 4: "under", 7: "reverse"}.get(code)
            if on:
                style[on] = True
            for off in {22: ("bold", "dim"), 24: ("under",), 27: ("reverse",)}.get(code, ()):
                style.pop(off, None)
    return style


def cells(line, style):
    """Characters with their styles; the style goes on to the next line."""
    out = []
    for part in re.split(r"(\x1b\[[0-9;:]*m|\x1b\([AB0]|[\x0e\x0f])", line):
        if part.startswith("\x1b["):
            style = styled(style, part[2:-1])
        elif part and part[0] not in "\x1b\x0e\x0f":
            out += [(c, style) for c in part]
    return out, style


def fill(name):
    return f'fill="{name}"' if name.startswith("#") else f'class="{name}"'


def shape(c, x, y):
    """A block or a line as a path inside a cell."""
    w, h = WIDE, HIGH
    if c in EIGHTHS:
        top = h * (8 - EIGHTHS[c]) / 8
        return f"M{x} {y + top:g}h{w}v{h - top:g}h-{w}z"
    if c in LEFT:
        return f"M{x} {y + 3}h{w * LEFT[c] / 8:g}v{h - 6}h-{w * LEFT[c] / 8:g}z"
    mx, my, out = x + w / 2 - 0.5, y + h / 2 - 0.5, ""
    ways = LINES.get(c, "")
    if "l" in ways or "r" in ways:
        a, b = (x if "l" in ways else mx), (x + w if "r" in ways else mx + 1)
        out += f"M{a:g} {my:g}H{b:g}v1H{a:g}z"
    if "u" in ways or "d" in ways:
        a, b = (y if "u" in ways else my), (y + h if "d" in ways else my + 1)
        out += f"M{mx:g} {a:g}V{b:g}h1V{a:g}z"
    return out


def picture(text):
    style, lines = {}, []
    for line in text.rstrip("\n").split("\n"):
        row, style = cells(line, style)
        lines.append(row)
    columns = max(map(len, lines))
    paths, out = {}, []
    for n, row in enumerate(lines):
        y, i = n * HIGH, 0
        while i < len(row):
            style, j = row[i][1], i
            while j < len(row) and row[j][1] == style:
                j += 1
            fg, bg = style.get("fg", "fg"), style.get("bg")
            if style.get("reverse"):
                fg, bg = bg or "bg", fg
            if bg:
                paths.setdefault((bg, False), []).insert(0, f"M{i * WIDE} {y}h{(j - i) * WIDE}v{HIGH}h-{(j - i) * WIDE}z")
            dim = bool(style.get("dim"))
            run = "".join(c for c, _ in row[i:j])
            if style.get("under"):
                paths.setdefault((fg, dim), []).append(f"M{i * WIDE} {y + HIGH - 3}h{(j - i) * WIDE}v1h-{(j - i) * WIDE}z")
            for k, c in enumerate(run):
                drawn = shape(c, (i + k) * WIDE, y)
                if drawn:
                    paths.setdefault((fg, dim), []).append(drawn)
            letters = "".join(" " if shape(c, 0, 0) else c for c in run)
            # Words far from each other are apart, so that none is moved by what is between.
            for word in re.finditer(r"\S+(?: \S+)*", letters):
                extra = (' font-weight="bold"' if style.get("bold") else "") + (' opacity=".65"' if dim else "")
                length = len(word[0]) * WIDE
                out.append(f'<text x="{(i + word.start()) * WIDE}" y="{y + SIZE}" textLength="{length}" '
                           f'{fill(fg)}{extra}>{escape(word[0])}</text>')
            i = j
    width, height = columns * WIDE + 16, len(lines) * HIGH + 16
    rules = lambda scheme: "".join(f".{n}{{fill:#{c}}}" for n, c in zip(NAMES, scheme))
    drawn = [f'<path {fill(name)}{" opacity=%s.5%s" % (chr(34), chr(34)) if dim else ""} d="{"".join(d)}"/>'
             for (name, dim), d in paths.items()]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {width} {height}" width="{width}" height="{height}">'
            f'<style>{rules(DARK)}@media (prefers-color-scheme:light){{{rules(LIGHT)}}}'
            f'text{{font-size:{SIZE}px;font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre}}</style>'
            f'<rect class="bg" x="-8" y="-8" width="{width}" height="{height}" rx="6"/>\n'
            + "\n".join(drawn + out) + "\n</svg>\n")


if __name__ == "__main__":
    sys.stdout.write(picture(sys.stdin.read()))
