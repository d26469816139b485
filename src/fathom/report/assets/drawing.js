// How figures look; shared by the page and by exports. Colours are CSS variables, so that a figure follows its page.
const drawing = {
  // Okabe and Ito's palette, safe for the colour-blind, in an order that keeps neighbours far apart.
  light: {
    "--ink": "#1c1e21", "--quiet": "#5b6169", "--line": "#c9ced6", "--faint": "#b9c0ca", "--paper": "#ffffff",
    "--c1": "#0072b2", "--c2": "#d55e00", "--c3": "#009e73", "--c4": "#cc79a7",
    "--c5": "#e69f00", "--c6": "#56b4e9", "--c7": "#6b6b6b", "--c8": "#b8a800",
  },
  dark: {
    "--ink": "#e8eaed", "--quiet": "#a3abb5", "--line": "#3f464f", "--faint": "#4d5661", "--paper": "#15181c",
    "--c1": "#4aa8e0", "--c2": "#f0803c", "--c3": "#2cc296", "--c4": "#dd93bd",
    "--c5": "#f0b429", "--c6": "#8fd0f5", "--c7": "#b0b0b0", "--c8": "#e4d54a",
  },
  config: {
    font: "system-ui, sans-serif",
    axis: {
      domainColor: "var(--line)", tickColor: "var(--line)", gridColor: "var(--line)", gridOpacity: 0.5,
      labelColor: "var(--quiet)", titleColor: "var(--quiet)", labelFont: "system-ui, sans-serif",
      titleFont: "system-ui, sans-serif", titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12, tickSize: 4,
      titlePadding: 5,
    },
    title: { color: "var(--ink)", font: "system-ui, sans-serif", fontSize: 13, fontWeight: 600 },
    legend: {
      labelColor: "var(--ink)", titleColor: "var(--quiet)", labelFont: "system-ui, sans-serif",
      titleFont: "system-ui, sans-serif", titleFontWeight: "normal", labelFontSize: 12, titleFontSize: 12, rowPadding: 4,
    },
    style: { cell: { stroke: "transparent" } },
  },
  view(specification, options) {
    return new vega.View(vega.parse(specification, drawing.config), options);
  },
  // The figure as SVG text with the light colours in place. Vega fits paths by a transform and leaves the width of their
  // strokes to vector-effect, which other readers of SVG do not know; here the numbers themselves are scaled.
  async svg(specification) {
    const picture = await drawing.view(specification, { renderer: "none" }).toSVG();
    const scaled = (path, a, b) =>
      path.replace(/([Ml])(-?\d+),(-?\d+)/g, (all, command, x, y) => `${command}${+(x * a).toFixed(3)},${+(y * b).toFixed(3)}`);
    return picture
      .replace(/ vector-effect="[\w-]+" transform="translate\(0,0\) scale\(([^,]+),([^)]+)\)" d="([^"]*)"/g,
        (all, a, b, path) => ` d="${scaled(path, a, b)}"`)
      .replace(/var\((--\w+)\)/g, (all, name) => drawing.light[name] || all);
  },
};
