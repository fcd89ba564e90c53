/* Links from another viewer: names of runs depend on the folder that was named, so `demo-grpo_roc` of one is `grpo_roc` of another. */
import type { Route } from "./router";

/** Names of known runs that a name from another viewer can mean: the longest name that ends it, else all that end with it. */
export function candidates(name: string, known: string[]): string[] {
  if (known.includes(name)) return [name];
  const [longest] = known.filter((one) => name.endsWith(`-${one}`)).sort((a, b) => b.length - a.length);
  return longest === undefined ? known.filter((one) => one.endsWith(`-${name}`)) : [longest];
}

/** The same view with the names of known runs; null if nothing changes or a name is unknown or ambiguous. */
export function renamed(route: Route, known: string[]): Route | null {
  const unknown = { found: false };
  const name = (run: string): string => {
    const [only, ...more] = candidates(run, known);
    if (only === undefined || more.length) unknown.found = true;
    return only ?? run;
  };
  const segments = route.segments.map((segment, at) => (at === 1 && route.segments[0] === "runs" ? name(segment) : segment));
  const query = { ...route.query };
  for (const [key, value] of Object.entries(query)) {
    if (route.segments[0] === "overview" && key === "runs") query[key] = value.split(",").filter(Boolean).map(name).join(",");
    if (route.segments[0] === "compare" && (key === "a" || key === "b") && value) query[key] = name(value);
    if (route.segments[0] === "pair" && (key === "a" || key === "b")) {
      const cut = value.lastIndexOf("/");
      if (cut > 0) query[key] = name(value.slice(0, cut)) + value.slice(cut);
    }
  }
  const same = segments.join("/") === route.segments.join("/") && JSON.stringify(query) === JSON.stringify(route.query);
  return same || unknown.found ? null : { segments, query };
}
