# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pictures of tests/bench/table."""

from html import escape
from math import log10

# What tests/bench/cpus.sh simulates.
CPUS = (16, 64, 256, 1024)
USECS = (5, 20, 100)


def plot_shares(rows, path):
    """Each row's share of what is allowed, on a logarithmic scale; and how far its p99 goes."""
    rows = [row for row in rows if row.missing is None and row.share is not None]
    left, width, step, decades = 400, 480, 22, (-2, 2)
    height = step * len(rows) + 70

    def x(share):
        at = log10(min(max(share, 10 ** decades[0]), 10 ** decades[1]))
        return left + width * (at - decades[0]) / (decades[1] - decades[0])

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="10" y="18" font-size="14">What was used of what is allowed (1: just reached); '
           'the thin line goes to our p99</text>']
    for decade in range(decades[0], decades[1] + 1):
        at = x(10 ** decade)
        out.append(f'<line x1="{at:.1f}" y1="30" x2="{at:.1f}" y2="{height - 30}" '
                   f'stroke="{"black" if decade == 0 else "#ddd"}"/>')
        out.append(f'<text x="{at:.1f}" y="{height - 12}" text-anchor="middle">{10.0 ** decade:g}</text>')
    for i, row in enumerate(rows):
        top = 36 + i * step
        end, far = x(row.share), x(row.used(row.ours[1], row.theirs[0]))
        colour = "#3a7d44" if row.share <= 1 else "#b3362b"
        out.append(f'<text x="{left - 8}" y="{top + 12}" text-anchor="end">{escape(row.title)}</text>')
        out.append(f'<rect x="{left}" y="{top}" width="{max(end - left, 1):.1f}" height="14" fill="{colour}"/>')
        out.append(f'<line x1="{end:.1f}" y1="{top + 7}" x2="{far:.1f}" y2="{top + 7}" stroke="{colour}"/>')
        out.append(f'<text x="{max(end, far) + 4:.1f}" y="{top + 12}">{row.share:.3g}</text>')
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def plot_cpus(medians, path):
    """What a hold takes, against the number of CPUs: by threads, and by one thread. Both scales are logarithmic."""
    left, top, width, height, low, high = 70, 50, 560, 380, 2, 7  # 100 us to 10 s
    colours = dict(zip(USECS, ("#3a7d44", "#2b5fb3", "#b3362b")))

    def x(n):
        return left + width * log10(n / CPUS[0]) / log10(CPUS[-1] / CPUS[0])

    def y(usec):
        return top + height * (high - log10(usec)) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 150}" height="{top + height + 50}" '
           'font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="10" y="18" font-size="14">A hold with six monitors on every CPU, by the number of CPUs, '
           'simulated</text>',
           '<text x="10" y="36">A call takes so many us for another CPU. Dashed: by one thread.</text>']
    for decade in range(low, high + 1):
        at = y(10 ** decade)
        out.append(f'<line x1="{left}" y1="{at:.1f}" x2="{left + width}" y2="{at:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10 ** (decade - 3):g} ms</text>')
    for n in CPUS:
        out.append(f'<line x1="{x(n):.1f}" y1="{top}" x2="{x(n):.1f}" y2="{top + height}" stroke="#ddd"/>')
        out.append(f'<text x="{x(n):.1f}" y="{top + height + 18}" text-anchor="middle">{n}</text>')
    for usec, colour in colours.items():
        for side, dashes in (("ours", ""), ("theirs", ' stroke-dasharray="6 4"')):
            points = [(x(n), y(medians[f"cpus-{n}-{usec}", side])) for n in CPUS
                      if (f"cpus-{n}-{usec}", side) in medians]
            if not points:
                continue
            line = " ".join(f"{at[0]:.1f},{at[1]:.1f}" for at in points)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
            out.append(f'<text x="{points[-1][0] + 6:.1f}" y="{points[-1][1] + 4:.1f}" fill="{colour}">'
                       f'{usec} us{"" if side == "ours" else ", one thread"}</text>')
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")
