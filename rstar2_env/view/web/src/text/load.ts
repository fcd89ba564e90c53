/* Loads the script that formats messages, once; an exported page holds it. */
import { useEffect, useState } from "preact/hooks";
import type { Formatter } from "./nodes";

let loading: Promise<Formatter | null> | null = null;

function load(): Promise<Formatter | null> {
  loading ??= new Promise((resolve) => {
    if (window.rstar2Formatter) return resolve(window.rstar2Formatter);
    const script = document.createElement("script");
    script.src = "text.js";
    script.onload = () => resolve(window.rstar2Formatter ?? null);
    // The next message tries again; until then, texts are shown unformatted.
    script.onerror = () => {
      loading = null;
      resolve(null);
    };
    document.head.append(script);
  });
  return loading;
}

/** The formatter; null until it is loaded. */
export function useFormatter(wanted: boolean): Formatter | null {
  const [found, setFound] = useState<Formatter | null>(window.rstar2Formatter ?? null);
  useEffect(() => {
    if (!wanted || found) return;
    let current = true;
    void load().then((formatter) => current && setFound(formatter));
    return () => {
      current = false;
    };
  }, [wanted, found]);
  return found;
}
