/** Draws the decorative fern: leaflets on leaves on a slightly bent stem. */

const leavesEachSide = 26;
const leafletsEachSide = 15;

/** Fills an SVG of 400 by 560. */
export function drawFern(picture: SVGElement): void {
  const stem = Array.from({ length: 41 }, (_, step) => pointOnStem(step / 40));
  addPath(picture, { class: "stem", d: `M${stem.join("L")}` });
  const leaf = drawLeaf();
  for (let index = 0; index < leavesEachSide; index++) {
    // Closer towards the tip, where leaves are short.
    const along = 0.14 + 0.84 * (index / leavesEachSide) ** 0.92;
    for (const side of [-1, 1]) {
      const turn = side * (78 - 29 * along) - 90;
      const size = leafSize(along);
      const transform = `translate(${pointOnStem(along + side * 0.008)}) rotate(${turn}) scale(${size})`;
      addPath(picture, { d: leaf, transform });
    }
  }
}

function addPath(picture: SVGElement, attributes: Readonly<Record<string, string>>): void {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [name, value] of Object.entries(attributes)) path.setAttribute(name, value);
  picture.append(path);
}

function pointOnStem(along: number): string {
  const x = 190 + 46 * Math.sin(along * 2.1) - 30 * along ** 2;
  return `${x} ${548 - 526 * along}`;
}

/** Small at the foot, largest at a third of the height, almost nothing at the tip. */
function leafSize(along: number): number {
  const growth = Math.min(1, 0.42 + 2.4 * (along - 0.14));
  return 2.32 * growth * (1 - along) ** 0.78 + 0.05;
}

/** A leaf of length 100: its midrib, and leaflets on both sides that shrink towards the tip. */
function drawLeaf(): string {
  let path = "M0 0H100";
  for (let index = 1; index <= leafletsEachSide; index++) {
    const along = index / (leafletsEachSide + 1);
    const size = 13.5 * (1 - along) ** 0.7 + 0.5;
    for (const side of [-1, 1]) {
      const point = (turn: number, distance: number) =>
        `${100 * along + distance * Math.cos(turn)} ${side * distance * Math.sin(turn)}`;
      const [root, tip] = [point(0, 0), point(0.98, size)];
      path += `M${root}Q${point(0.48, size * 0.66)} ${tip}Q${point(1.48, size * 0.66)} ${root}`;
    }
  }
  return path;
}
