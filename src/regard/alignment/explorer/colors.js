// Colours of the weights: one hue whose lightness changes all the way, so that it reads in grey
// and with any colour blindness; blue against orange where two matrices are compared.

const STOPS = {
  light: ["#ffffff", "#d2e3f3", "#7fb8da", "#2878b8", "#08306b"],
  dark: ["#14181f", "#173a63", "#2468a8", "#62abe6", "#e2f2ff"],
  lightBoth: ["#8a3d00", "#f0a05a", "#ffffff", "#7fb8da", "#08306b"],
  darkBoth: ["#ffd9ad", "#c96f1d", "#14181f", "#2f7fc4", "#d6ecff"],
};

function ramp(stops) {
  const rgb = stops.map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, place) => {
    const at = (place / 255) * (rgb.length - 1);
    const left = Math.min(Math.floor(at), rgb.length - 2);
    return rgb[left].map((low, c) => Math.round(low + (rgb[left + 1][c] - low) * (at - left)));
  });
}

const RAMPS = Object.fromEntries(Object.entries(STOPS).map(([name, stops]) => [name, ramp(stops)]));

/** A function from a weight (0 to 1; -1 to 1 if `signed`) to [red, green, blue]. */
export function palette(theme, signed = false) {
  const colors = RAMPS[signed ? `${theme}Both` : theme];
  return (value) => {
    const share = signed ? (value + 1) / 2 : value;
    return colors[Math.max(0, Math.min(255, Math.round(share * 255)))];
  };
}

/** Black or white, whichever can be read on a colour (WCAG's relative luminance). */
export function inkOn([red, green, blue]) {
  const linear = [red, green, blue].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return luminance > 0.179 ? "#000000" : "#ffffff";
}

export function css([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}
