"use strict";
// The map of a run, or the plane of a table. Bokeh draws, zooms and pans; what is here decides colours and
// says what is below the pointer.
(async () => {
  const began = performance.now();
  const meta = JSON.parse(document.getElementById("data").textContent);
  const box = document.getElementById("figure");
  const waiting = document.getElementById("waiting");
  const $ = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const kinds = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };

  async function unpack(name) {
    const element = $(`layer-${name}`);
    if (!element) return null;
    const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    element.remove();
    return new kinds[element.dataset.kind](buffer);
  }

  function put(parent, tag, text, className) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    parent.append(element);
    return element;
  }

  // What is known of a pixel or sample, as a class line and pairs of words and values.
  function tell(place, pairs) {
    const readout = $("readout");
    readout.replaceChildren();
    const what = put(readout, "div", undefined, "what");
    const known = place ? meta.classes[place - 1] : null;
    if (known) {
      const swatch = put(what, "span", undefined, "swatch");
      swatch.style.background = `rgb(${known.color.join(",")})`;
    }
    put(what, "span", known ? known.name : meta.classes.length ? "no class" : "valid pixel");
    const list = put(readout, "dl");
    for (const [name, value] of pairs) { put(list, "dt", name); put(list, "dd", value); }
  }

  const isMap = meta.kind === "map";
  const ratio = isMap ? Math.min(Math.max(meta.height / meta.width, 0.35), 1.15) : 0.7;
  const fig = Bokeh.Plotting.figure({
    sizing_mode: "stretch_width", height: Math.round(ratio * Math.max(280, box.clientWidth)),
    tools: "pan,wheel_zoom,box_zoom,reset", active_scroll: null, match_aspect: isMap,
    ...(isMap ? { x_axis_type: null, y_axis_type: null } : { x_axis_label: "first eigenvector", y_axis_label: "second eigenvector" }),
    toolbar_location: "right", background_fill_alpha: 1, outline_line_color: null, border_fill_alpha: 1, min_border: isMap ? 0 : 24,
  });
  fig.toolbar.logo = null;
  const home = isMap ? { x: [0, meta.width], y: [meta.height, 0] } : null;

  // The wheel zooms while the map has the focus, after a click or a key: until then it scrolls the page.
  const wheel = fig.toolbar.tools.find((tool) => tool instanceof Bokeh.WheelZoomTool);
  box.addEventListener("focusin", () => { wheel.active = true; });
  box.addEventListener("focusout", () => { wheel.active = false; });

  const repaint = () => {
    fig.background_fill_color = css("--faint");
    fig.border_fill_color = css("--card");
    for (const axis of fig.axes) {
      axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = css("--line");
      axis.major_label_text_color = axis.axis_label_text_color = css("--soft");
    }
    for (const grid of [...fig.center].filter((one) => one instanceof Bokeh.Grid)) grid.grid_line_color = isMap ? null : css("--line");
  };
  repaint();
  window.addEventListener("eigenscape-theme", repaint);

  const shown = meta.classes.map(() => true);
  const checks = [...document.querySelectorAll("#legend input[type=checkbox]")];

  let paint = () => {};
  const legend = () => {
    checks.forEach((check, place) => { shown[place] = check.checked; });
    paint();
  };
  checks.forEach((check) => check.addEventListener("change", legend));
  const all = (value) => () => { checks.forEach((check) => { check.checked = value; }); legend(); };
  if ($("legend-all")) { $("legend-all").addEventListener("click", all(true)); $("legend-none").addEventListener("click", all(false)); }

  // Zoom about the middle, by buttons and keys.
  const ranges = () => [fig.x_range, fig.y_range];
  function zoom(factor) {
    for (const range of ranges()) {
      const middle = (range.start + range.end) / 2, half = (range.end - range.start) / 2 / factor;
      [range.start, range.end] = [middle - half, middle + half];
    }
  }
  let start = null;
  function reset() {
    if (start) ranges().forEach((range, n) => { [range.start, range.end] = start[n]; });
  }
  $("zoom-in").addEventListener("click", () => zoom(1.6));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  $("zoom-all").addEventListener("click", reset);

  const state = { fig, meta, shown, ready: false, started: began };
  window.eigenscapeReport = state;

  if (isMap) {
    const { width, height } = meta;
    // Pixels are square: the longer way round, the range is wider than the scene.
    fig.x_range = new Bokeh.Range1d({ start: 0, end: width });
    fig.y_range = new Bokeh.Range1d({ start: height, end: 0 });
    const [scene, classes, confidence, given] =
      await Promise.all(["scene", "class", "confidence", "given"].map(unpack));
    const { ndarray } = Bokeh.require("core/util/ndarray");
    const image = (buffer) => ndarray(new Uint32Array(buffer), { dtype: "uint32", shape: [height, width] });
    const below = fig.image_rgba({ image: [image(scene.buffer.slice(0))], x: 0, y: 0, dw: width, dh: height });
    // The more the classes cover, the greyer the scene below: its colours would make theirs others than the legend's.
    let grey = 0;
    const fade = (share) => {
      if (share === grey) return;
      grey = share;
      const faded = Uint8Array.from(scene);
      for (let n = 0; share && n < faded.length; n += 4) {
        const light = 0.3 * scene[n] + 0.59 * scene[n + 1] + 0.11 * scene[n + 2];
        for (let k = n; k < n + 3; k++) faded[k] = scene[k] + share * (light - scene[k]);
      }
      below.data_source.data = { ...below.data_source.data, image: [image(faded.buffer)] };
    };
    const pixels = new Uint32Array(width * height);
    const above = fig.image_rgba({ image: [image(pixels.buffer)], x: 0, y: 0, dw: width, dh: height });
    const mark = new Bokeh.ColumnDataSource({ data: { x: [], y: [] } });
    for (const [color, thick] of [["white", 4], ["black", 1.5]]) {
      fig.rect({ field: "x" }, { field: "y" }, { value: 1 }, { value: 1 }, {
        source: mark, fill_color: null, line_color: { value: color }, line_width: { value: thick } });
    }

    // Viridis at 0, 1/4, 1/2, 3/4, 1.
    const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
    const rgba = (color) => (255 << 24 | color[2] << 16 | color[1] << 8 | color[0]) >>> 0;
    const ramp = Uint32Array.from({ length: 256 }, (_, n) => {
      if (n > 200) return 0;
      const at = 4 * n / 200, low = Math.min(3, Math.floor(at)), part = at - low;
      return rgba(stops[low].map((c, k) => Math.round(c + part * (stops[low + 1][k] - c))));
    });
    const slider = $("opacity");
    let layer = classes ? "class" : "none";
    paint = () => {
      pixels.fill(0);
      const own = layer === "given" ? given : classes;
      if (own && layer !== "none") {
        const table = new Uint32Array(meta.classes.length + 1);
        meta.classes.forEach((one, place) => { table[place + 1] = shown[place] ? rgba(one.color) : 0; });
        if (layer === "confidence") {
          for (let n = 0; n < pixels.length; n++) pixels[n] = table[classes[n]] ? ramp[confidence[n]] : 0;
        } else {
          for (let n = 0; n < pixels.length; n++) pixels[n] = table[own[n]];
        }
      }
      above.data_source.data = { ...above.data_source.data, image: [image(pixels.buffer.slice(0))] };
      fade(layer === "none" || !slider ? 0 : slider.value / 100);
      if ($("ramp")) $("ramp").hidden = layer !== "confidence";
      state.layer = layer;
    };
    for (const [name, there] of [["confidence", confidence], ["given", given]]) {
      const label = document.querySelector(`.needs-${name}`);
      if (label) label.hidden = !there;
    }
    document.querySelectorAll("input[name=layer]").forEach((radio) =>
      radio.addEventListener("change", () => { layer = radio.value; paint(); }));
    const opacity = () => {
      if (!slider) return;
      above.glyph.global_alpha = { value: slider.value / 100 };
      fade(layer === "none" ? 0 : slider.value / 100);
      $("opacity-value").textContent = `${slider.value} %`;
      state.opacity = slider.value / 100;
    };
    if (slider) slider.addEventListener("input", opacity);
    opacity();
    paint();

    const [spectra, means, spots] = await Promise.all(["spectra", "means", "spots"].map(unpack));
    const sampled = meta.spectra;
    const bands = sampled.bands ? sampled.bands.length : 0;
    // Of the same class, or a pixel of another one would stand for it.
    const called = spots && Uint16Array.from(spots, (spot) => classes
      ? classes[Math.floor(Math.floor(spot / meta.columns) / meta.step) * width + Math.floor(spot % meta.columns / meta.step)] : 0);
    const nearest = (row, column, place) => {
      let best = -1, least = Infinity;
      for (let n = 0; n < spots.length; n++) {
        if (called[n] !== place) continue;
        const away = Math.hypot(Math.floor(spots[n] / meta.columns) - row, spots[n] % meta.columns - column);
        if (away < least) { least = away; best = n; }
      }
      return [best, least];
    };
    const svg = (tag, attributes) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      return element;
    };
    function drawSpectrum(row, column, place) {
      const where = $("spectrum-chart");
      where.replaceChildren();
      if (!bands || !spots) return;
      const [one, away] = nearest(row, column, place);
      if (one < 0) return;
      const x0 = sampled.bands[0], x1 = sampled.bands[bands - 1];
      const mean = sampled.with_mean.indexOf(place - 1);
      const own = spectra.subarray(one * bands, (one + 1) * bands);
      const other = mean >= 0 ? means.subarray(mean * bands, (mean + 1) * bands) : null;
      let low = 65535, high = 0;
      for (const values of [own, other]) if (values) for (const v of values) { low = Math.min(low, v); high = Math.max(high, v); }
      const line = (values) => Array.from(values, (v, n) =>
        `${(6 + 248 * (sampled.bands[n] - x0) / (x1 - x0 || 1)).toFixed(1)},${(92 - 84 * (v - low) / (high - low || 1)).toFixed(1)}`).join(" ");
      const real = (v) => sampled.low + v / 65535 * (sampled.high - sampled.low);
      const chart = svg("svg", { viewBox: "0 0 260 112", role: "img", class: "spectrum", "aria-label": "Spectrum of the pixel" });
      if (other) chart.append(svg("polyline", { points: line(other), fill: "none", stroke: css("--soft"), "stroke-width": 1.2, "stroke-dasharray": "4 3" }));
      chart.append(svg("polyline", { points: line(own), fill: "none", stroke: css("--accent"), "stroke-width": 1.8 }));
      for (const [x, anchor, text] of [[6, "start", `${x0}`], [254, "end", `${x1} ${sampled.unit === "nm" ? "nm" : "(band)"}`]]) {
        const label = svg("text", { x, y: 108, "text-anchor": anchor, fill: css("--soft"), "font-size": 11 });
        label.textContent = text;
        chart.append(label);
      }
      where.append(chart);
      const short = (v) => Number(real(v).toPrecision(3)).toLocaleString("en");
      const far = away < 0.5 ? "of this pixel" : `of the nearest sampled pixel${!place ? "" : meta.clusters ? " of its cluster" : " of its class"}, ${Math.round(away)} ${Math.round(away) === 1 ? "pixel" : "pixels"} away`;
      put(where, "p", `Spectrum ${far}, values ${short(low)} to ${short(high)}` +
        (other ? `; dashed: mean of its ${meta.clusters ? "cluster" : "class"}.` : "."), "hint");
    }
    let at = null, pinned = false;
    function read(column, row) {
      if (column < 0 || row < 0 || column >= width || row >= height) return;
      at = [column, row];
      const n = row * width + column;
      mark.data = { x: [column + 0.5], y: [row + 0.5] };
      const valid = scene[4 * n + 3] > 0;
      const place = classes ? classes[n] : 0;
      const [line, sample] = [row * meta.step, column * meta.step];
      const pairs = [["row, column", `${line}, ${sample}`]];
      if (meta.transform) {
        const [a, b, c, d, e, f] = meta.transform;
        const [x, y] = [a * (sample + 0.5) + b * (line + 0.5) + c, d * (sample + 0.5) + e * (line + 0.5) + f];
        const digits = Math.abs(a) < 0.01 ? 6 : 1;
        pairs.push(["x, y", `${x.toFixed(digits)}, ${y.toFixed(digits)}`]);
      }
      if (confidence && confidence[n] <= 200) pairs.push([meta.clusters ? "closeness" : "confidence", `${(confidence[n] / 2).toFixed(0)} %`]);
      if (given) pairs.push(["label", given[n] ? meta.classes[given[n] - 1].name : "none"]);
      if (!valid) { tell(0, [["row, column", `${line}, ${sample}`], ["", "not a valid pixel"]]); $("spectrum-chart").replaceChildren(); return; }
      tell(place, pairs);
      drawSpectrum(line, sample, place);
    }
    state.read = read;
    fig.on_event("mousemove", (event) => { if (!pinned) read(Math.floor(event.x), Math.floor(event.y)); });
    fig.on_event("tap", (event) => {
      const [column, row] = [Math.floor(event.x), Math.floor(event.y)];
      pinned = !(pinned && at && at[0] === column && at[1] === row);
      read(column, row);
    });
    box.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (event.key in steps) {
        const size = event.shiftKey ? 10 : 1, [dx, dy] = steps[event.key];
        const [x, y] = at || [Math.floor(width / 2), Math.floor(height / 2)];
        pinned = true;
        read(Math.min(width - 1, Math.max(0, x + size * dx)), Math.min(height - 1, Math.max(0, y + size * dy)));
        event.preventDefault();
      }
    });
    window.addEventListener("eigenscape-theme", () => { if (at) read(...at); });
  } else {
    const points = meta.points;
    const colors = () => (points.class || points.x.map(() => 0)).map((place) =>
      place ? `rgb(${meta.classes[place - 1].color.join(",")})` : css("--fill"));
    const visible = () => (points.class || points.x.map(() => 0)).map((place) => (place && !shown[place - 1] ? 0 : 0.85));
    const source = new Bokeh.ColumnDataSource({ data: { x: points.x, y: points.y, color: colors(), alpha: visible() } });
    const size = points.x.length > 1500 ? 5 : 7;
    fig.scatter({ field: "x" }, { field: "y" }, { source, size, fill_color: { field: "color" }, fill_alpha: { field: "alpha" }, line_color: null });
    paint = () => { source.data = { ...source.data, color: colors(), alpha: visible() }; };
    window.addEventListener("eigenscape-theme", paint);
    const read = (n) => {
      const pairs = [["row", `${points.row[n]}`]];
      if (points.confidence && points.confidence[n] !== null) pairs.push(["confidence", `${(100 * points.confidence[n]).toFixed(0)} %`]);
      tell(points.class ? points.class[n] : 0, pairs);
    };
    state.read = read;
    fig.on_event("mousemove", (event) => {
      const [dx, dy] = ranges().map((range) => range.end - range.start);
      let best = -1, least = 0.03;
      points.x.forEach((x, n) => {
        const away = Math.hypot((x - event.x) / dx, (points.y[n] - event.y) / dy);
        if (away < least) { least = away; best = n; }
      });
      if (best >= 0) read(best);
    });
  }
  box.addEventListener("keydown", (event) => {
    const keys = { "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: reset };
    if (event.key in keys) { keys[event.key](); event.preventDefault(); }
  });
  const view = await Bokeh.Plotting.show(fig, box);
  state.view = view;
  if (isMap) {
    // The frame may be longer one way than the scene: there the ranges reach beyond it, and pixels stay square.
    const fit = () => {
      const [w, h] = [view.frame.bbox.width, view.frame.bbox.height];
      const scale = Math.max(meta.width / w, meta.height / h);
      const [halfX, halfY] = [scale * w / 2, scale * h / 2];
      start = [[meta.width / 2 - halfX, meta.width / 2 + halfX], [meta.height / 2 + halfY, meta.height / 2 - halfY]];
      reset();
    };
    fit();
  } else {
    start = ranges().map((range) => [range.start, range.end]);
  }
  waiting.remove();
  state.ready = true;
  box.dataset.ready = "";
  state.milliseconds = performance.now() - began;
  state.opened = performance.now();
})().catch((error) => {
  const waiting = document.getElementById("waiting");
  if (waiting) waiting.textContent = `The map could not be drawn: ${error.message}`;
  console.error(error);
});
