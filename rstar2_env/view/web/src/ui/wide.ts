/* Current width of an element. */
import { useLayoutEffect, useState } from "preact/hooks";

export function useWide(element: { current: HTMLElement | null }): number {
  const [wide, setWide] = useState(() => Math.min(innerWidth, 1400));
  useLayoutEffect(() => {
    const node = element.current;
    if (!node) return;
    const read = () => setWide(node.clientWidth);
    read();
    const observer = new ResizeObserver(read);
    observer.observe(node);
    return () => observer.disconnect();
  }, [element.current]);
  return wide;
}
