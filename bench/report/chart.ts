/** Draws the headline scenarios as bars, readable on light and on dark ground. */
import type { ContenderName } from "../contenders/contender.ts";
import { scenarios } from "../scenarios.ts";
import type { Results } from "./results.ts";

const width = 760;
const left = 120;
const barHeight = 18;
const barGap = 6;
const groupGap = 34;
const barWidthMax = width - left - 150;

const colors: Record<ContenderName, string> = {
  "plant-store": "#2e9e5b",
  previous: "#a3c9a8",
  bare: "#8b949e",
  "bare-threads": "#c4cad1",
  hono: "#d9653d",
  elysia: "#c75b9b",
  fastify: "#4c8fd6",
  pocketbase: "#b07cd8",
  "json-server": "#d98a3d",
};

const style = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .note { fill: #59636e; font-size: 12px; }
  .own { font-weight: 600; }
  .ground { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .note { fill: #9198a1; }
    .ground { fill: #0d1117; }
  }`;

export function renderChart(results: Results): string {
  const parts: string[] = [];
  let top = 34;
  for (const scenario of scenarios.filter(({ isHeadline }) => isHeadline)) {
    const rows = results.scenarios.filter((row) => row.scenario === scenario.name);
    if (rows.length === 0) continue;
    const most = Math.max(...rows.map((row) => row.median.answersPerSecond), 1);
    parts.push(text(left, top, scenario.title, "title"));
    top += 10;
    for (const { contender, median } of rows) {
      parts.push(bar(top, contender, median.answersPerSecond, most));
      top += barHeight + barGap;
    }
    top += groupGap;
  }
  const { machine } = results;
  const note = `answers per second, 64 connections, ${machine.cores} cores (${machine.processor}), higher is better`;
  parts.push(text(left, top - 10, note, "note"));
  const height = top + 12;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">
<title>Answers per second of Plant Store and others</title>
<style>${style}
</style>
<rect class="ground" width="${width}" height="${height}" rx="6"/>
${parts.join("\n")}
</svg>
`;
}

function bar(top: number, contender: ContenderName, rate: number, most: number): string {
  const length = Math.max(2, (rate / most) * barWidthMax);
  const middle = top + barHeight - 5;
  const kind = contender === "plant-store" ? "own" : "";
  const amount = rate < 100 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en");
  return [
    `<text class="${kind}" x="${left - 10}" y="${middle}" text-anchor="end">${contender}</text>`,
    `<rect x="${left}" y="${top}" width="${length.toFixed(1)}" height="${barHeight}" rx="3" fill="${colors[contender]}"/>`,
    text(left + length + 8, middle, amount, kind),
  ].join("\n");
}

function text(x: number, y: number, content: string, kind: string): string {
  const escaped = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text class="${kind}" x="${x.toFixed(1)}" y="${y}">${escaped}</text>`;
}
