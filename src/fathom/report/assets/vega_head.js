// Debian ships Vega as separate modules that ask for each other by name. This joins those that the figures need.
const vega = (() => {
  const modules = {};
