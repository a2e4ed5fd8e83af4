// Making elements. Text goes in as text, never as HTML: tokens are anybody's.

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "style") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Fill a select with [value, text] pairs and keep what was chosen where it is still there. */
export function fill(select, options, wanted) {
  select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
  const found = options.find(([value]) => value === String(wanted));
  select.value = (found ?? options[0])[0];
  return select.value;
}

/** Put pixels of a matrix, one a cell, on a canvas of that many pixels. */
export function paint(canvas, matrix, color) {
  canvas.width = matrix.columns;
  canvas.height = matrix.rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(matrix.columns, matrix.rows);
  for (let cell = 0; cell < matrix.cells.length; cell += 1) {
    const [red, green, blue] = color(matrix.cells[cell]);
    image.data.set([red, green, blue, 255], 4 * cell);
  }
  context.putImageData(image, 0, 0);
}
