/* Opening of the data source: the data embedded in the page, or the server. */
import { EmbeddedSource, readEmbedded } from "./embedded";
import { ServerSource } from "./server";
import type { Source } from "./source";

/** Open the source of this page: its embedded data if it has any, else the server that delivered it. */
export async function openSource(): Promise<Source> {
  const embedded = document.getElementById("embedded");
  return embedded ? new EmbeddedSource(await readEmbedded(embedded.textContent ?? "")) : new ServerSource();
}
