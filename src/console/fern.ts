/** Draws the decorative fern: leaflets on leaves on a slightly bent stem. */
import { makeSvg } from "./elements.ts";

const leavesEachSide = 26;
const leafletsEachSide = 15;

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Fills an SVG of 400 by 560. */
export function drawFern(picture: SVGElement): void {
  const leaves: SVGElement[] = [];
  for (let index = 0; index < leavesEachSide; index++) {
    // Closer towards the tip, where leaves are short.
    const along = 0.14 + 0.84 * (index / leavesEachSide) ** 0.92;
    for (const side of [-1, 1]) {
      const root = onStem(along + side * 0.008);
      const heading = stemHeading(along) + side * (1.36 - 0.5 * along);
      leaves.push(drawLeaf(root, heading, leafLength(along), side));
    }
  }
  const stem = Array.from({ length: 41 }, (_, step) => pair(onStem(step / 40))).join("L");
  picture.replaceChildren(makeSvg("path", { class: "rib stem", d: `M${stem}` }), ...leaves);
}

/** Short at the foot, longest at a third of the height, nothing at the tip. */
function leafLength(along: number): number {
  const growth = Math.min(1, 0.42 + 2.4 * (along - 0.14));
  return 232 * growth * (1 - along) ** 0.78 + 5;
}

function onStem(along: number): Point {
  return { x: 190 + 46 * Math.sin(along * 2.1) - 30 * along ** 2, y: 548 - 526 * along };
}

function stemHeading(along: number): number {
  const from = onStem(along - 0.01);
  const to = onStem(along + 0.01);
  return Math.atan2(to.y - from.y, to.x - from.x);
}

/** Leaflets that shrink towards the tip, on a midrib that bends upwards. */
function drawLeaf(root: Point, heading: number, length: number, side: number): SVGElement {
  const at = (along: number) => advance(root, heading - side * 0.22 * along ** 2, length * along);
  let leaflets = "";
  for (let index = 1; index <= leafletsEachSide; index++) {
    const along = index / (leafletsEachSide + 1);
    const size = (length / 7.4) * (1 - along) ** 0.7 + 0.8;
    const direction = heading - side * 0.4 * along;
    leaflets += drawLeaflet(at(along), direction - 0.98, size);
    leaflets += drawLeaflet(at(along), direction + 0.98, size);
  }
  const rib = [0, 0.25, 0.5, 0.75, 1].map((along) => pair(at(along))).join("L");
  return makeSvg(
    "g",
    { class: "leaf" },
    makeSvg("path", { class: "rib", d: `M${rib}` }),
    makeSvg("path", { d: leaflets }),
  );
}

function drawLeaflet(at: Point, heading: number, size: number): string {
  const tip = advance(at, heading, size);
  const left = advance(at, heading - 0.5, size * 0.66);
  const right = advance(at, heading + 0.5, size * 0.66);
  return `M${pair(at)}Q${pair(left)} ${pair(tip)}Q${pair(right)} ${pair(at)}`;
}

function advance(from: Point, heading: number, distance: number): Point {
  return { x: from.x + Math.cos(heading) * distance, y: from.y + Math.sin(heading) * distance };
}

function pair({ x, y }: Point): string {
  return `${round(x)} ${round(y)}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
