"""UpSet plots as SVG."""

from __future__ import annotations

from tare.features.kernel.footprint_report.footprint_figures import Upset
from tare.report.parts.svg import LETTER, Axis, Drawing, circle, plain


def upset(figure: Upset) -> Drawing:
    """Bars of regions over dots of the platforms that they are in."""
    names, bars = figure.platforms, figure.bars
    labels = [f"{name} {size:,}" for name, size in zip(names, figure.sizes, strict=True)]
    left = min(200.0, 14 + LETTER * max((len(label) for label in labels), default=0))
    step = min(44.0, max(20.0, 460.0 / max(1, len(bars))))
    width, split = left + step * max(7, len(bars)) + 10, 190.0
    drawing = Drawing(width, split + 24 * len(names) + 8, f"what {', '.join(names)} have in common")
    up = Axis(0, max((bar.things for bar in bars), default=1) * 1.12, split - 10, 20)
    for tick in up.ticks(4):
        drawing.line(left, up.at(tick), width - 6, up.at(tick), "grid")
        drawing.text(left - 6, up.at(tick), plain(tick), "soft", "end")
    for row, label in enumerate(labels):
        drawing.text(left - 6, split + 24 * (row + 0.5), label, "", "end")
    for at, bar in enumerate(bars):
        x, inside = left + step * (at + 0.5), bar.inside
        within = " and ".join(names[row] for row in inside) + (" only" if len(inside) < len(names) else "")
        y = up.at(bar.things)
        title = f"{within}: {bar.things:,}"
        drawing.add("rect", x=x - step * 0.3, y=y, width=step * 0.6, height=split - 10 - y, class_="pile", title=title)
        drawing.text(x, y - 8, f"{bar.things:,}", "soft", "middle")
        for row in range(len(names)):
            dot = circle(x, split + 24 * (row + 0.5))
            drawing.add("path", d=dot, class_="dot" if row in inside else "dot empty")
        drawing.line(x, split + 24 * (min(inside) + 0.5), x, split + 24 * (max(inside) + 0.5), "link")
    return drawing
