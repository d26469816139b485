  const loaded = {};
  const load = (name) => {
    if (!loaded[name]) {
      const module = { exports: (loaded[name] = {}) };
      modules[name].call(globalThis, module.exports, load, module);
    }
    return loaded[name];
  };
  const { transforms } = load("vega-dataflow");
  Object.assign(transforms, load("vega-transforms"), load("vega-view-transforms"), load("vega-encode"));
  return { parse: load("vega-parser").parse, View: load("vega-view").View };
})();
