/* Entry point of the page: theme, data, shell. */
import { render } from "preact";
import { DataContext } from "./data/hooks";
import { Live } from "./data/live";
import { openSource } from "./data/open-source";
import { App } from "./shell/app";
import { applyTheme } from "./shell/theme";
import { Failed } from "./ui/states";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/ui.css";
import "./styles/table.css";
import "./styles/plots.css";
import "./styles/episode.css";
import "./styles/tokens.css";
import "./styles/groups.css";
import "./styles/pages.css";

async function start(): Promise<void> {
  applyTheme();
  const place = document.getElementById("app");
  if (!place) return;
  // The token is now in a cookie: remove it from the address, which users may share.
  const url = new URL(location.href);
  if (url.searchParams.has("token")) {
    url.searchParams.delete("token");
    history.replaceState(null, "", url);
  }
  try {
    const source = await openSource();
    const live = new Live(source);
    live.start();
    render(
      <DataContext.Provider value={{ source, live }}>
        <App />
      </DataContext.Provider>,
      place,
    );
  } catch (error) {
    render(<Failed error={error instanceof Error ? error : new Error(String(error))} />, place);
  }
}

void start();
