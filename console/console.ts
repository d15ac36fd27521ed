/** Starts the page. Its first request asks for a token: see `session.ts`. */
import { find } from "./elements.ts";
import { drawFern } from "./fern.ts";
import { GardenView } from "./garden-view.ts";

drawFern(find<SVGElement>("fern"));
// A plain link would change the address, which says what the page shows.
find("skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("main").focus();
});
new GardenView();
