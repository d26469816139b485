"""Pictures with logarithmic axes, as SVG that needs nothing else."""
import math

# Okabe and Ito's colours.
GROWTH = {"fathom": "#D55E00", "torchdyn-newest": "#009E73", "torch-expert": "#0072B2", "diffrax-nan": "#CC79A7"}


class Panel:
    """One diagram at (left, top): places points and draws axes."""

    def __init__(self, left, top, width, height, x_values, y_values):
        self.left, self.top, self.width, self.height = left, top, width, height
        self.y_low, self.y_high = self.decades(y_values)
        self.x_low, self.x_high = math.log10(min(x_values)), math.log10(max(x_values))

    @staticmethod
    def decades(values):
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return low, max(high, low + 1)

    def x(self, value):
        return self.left + (math.log10(value) - self.x_low) / (self.x_high - self.x_low) * self.width

    def y(self, value):
        return self.top + self.height - (math.log10(value) - self.y_low) / (self.y_high - self.y_low) * self.height

    def rows(self):
        """Lines and names of the decades of the vertical axis."""
        out = []
        for power in range(self.y_low, self.y_high + 1):
            y = self.y(10.0**power)
            out += [f'<line x1="{self.left}" x2="{self.left + self.width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
                    f'<text x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>']
        return out

    def columns(self, values):
        return [f'<text x="{self.x(v):.1f}" y="{self.top + self.height + 18}" text-anchor="middle">{v:g}</text>' for v in values]

    def line(self, points, colour):
        places = [(self.x(a), self.y(b)) for a, b in points]
        return [f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}"/>',
                *(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places)]


def page(width, height, title, content):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" role="img">',
                      f"<title>{title}</title>", f'<rect width="{width}" height="{height}" fill="white"/>', *content, "</svg>"]) + "\n"


def text(x, y, words, **attributes):
    more = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{words}</text>'


def growth_picture(points, axis, title):
    """Time of an iteration over one quantity."""
    entries = [name for name in GROWTH if any(name in point for point in points)]
    panel = Panel(70, 40, 520, 340, [p["value"] for p in points], [p[name] for p in points for name in entries if name in p])
    out = [text(70, 24, title, font_size=15), *panel.rows(), *panel.columns([p["value"] for p in points]),
           text(330, 426, axis, text_anchor="middle"),
           '<text transform="translate(18 220) rotate(-90)" text-anchor="middle">milliseconds an iteration</text>']
    labels = []
    for name in entries:
        line = [(p["value"], p[name]) for p in points if name in p]
        out += panel.line(line, GROWTH[name])
        labels.append([panel.y(line[-1][1]), panel.x(line[-1][0]), name])
    labels.sort()
    for above, below in zip(labels, labels[1:]):
        below[0] = max(below[0], above[0] + 16)  # names must not lie on each other
    out += [text(a + 8, b + 4, name.split("-nan")[0], fill=GROWTH[name]) for b, a, name in labels]
    return page(740, 440, title, out)
