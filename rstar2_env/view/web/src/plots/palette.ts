/* Colour-blind safe colours of lines and areas, for light and dark themes, with dashes and patterns as further cues. */

const LIGHT = ["#0b62b5", "#b8500a", "#00785a", "#a03c78", "#6f6500", "#5b4bb3", "#087d92", "#8a4b2a", "#4d4d4d", "#c02f45"];
const DARK = ["#6cb2f0", "#f0a05a", "#4cc79e", "#e48cc0", "#d8c84a", "#a99cf0", "#54cfe0", "#d19a74", "#b8b8b8", "#f27a8a"];

/** Dash patterns of lines, in pixels; the first is solid. */
const DASHES: number[][] = [[], [8, 3], [3, 2], [10, 3, 3, 3], [16, 4], [5, 2, 2, 2, 2, 2]];

export interface Look {
  line: (index: number) => string;
  area: (index: number, strength: number) => string;
  text: string;
  grid: string;
}

export function look(theme: string): Look {
  const colors = theme === "dark" ? DARK : LIGHT;
  const line = (index: number) => colors[index % colors.length] ?? "#888888";
  return {
    line,
    area: (index, strength) => line(index) + Math.round(strength * 255).toString(16).padStart(2, "0"),
    text: theme === "dark" ? "#aab4c2" : "#4e5969",
    grid: theme === "dark" ? "#2a313c" : "#e6e9ee",
  };
}

export function dash(index: number): number[] {
  return DASHES[index % DASHES.length] ?? [];
}

/** Pattern of an area by the index of its colour: none, stripes in two directions, dots, crossed stripes. */
export function hatching(index: number): number {
  return (index + Math.floor(index / LIGHT.length)) % 5;
}

/** Fill with stripes, dots or plain colour, so areas can be distinguished without colour. */
export function hatched(context: CanvasRenderingContext2D, color: string, index: number): CanvasPattern | string {
  const kind = hatching(index);
  if (kind === 0) return `${color}b0`;
  const tile = document.createElement("canvas");
  const ratio = devicePixelRatio || 1;
  const size = Math.round(8 * ratio);
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  if (!pen) return color;
  pen.fillStyle = `${color}55`;
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = 1.4 * ratio;
  pen.beginPath();
  if (kind === 1 || kind === 4) {
    pen.moveTo(0, size);
    pen.lineTo(size, 0);
  }
  if (kind === 2 || kind === 4) {
    pen.moveTo(0, 0);
    pen.lineTo(size, size);
  }
  if (kind === 3) pen.arc(size / 2, size / 2, size / 6, 0, 7);
  if (kind === 3) pen.fill();
  else pen.stroke();
  return context.createPattern(tile, "repeat") ?? color;
}
