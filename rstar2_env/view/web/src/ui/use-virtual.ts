/* TanStack Virtual's core as a hook: the visible rows of a long list. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  Virtualizer,
} from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useRef } from "preact/hooks";

export interface VirtualRows {
  items: VirtualItem[];
  height: number;
  scrollTo: (index: number) => void;
}

/** Visible rows of a list with rows of equal height, scrolled by an element. */
export function useVirtual(
  count: number,
  height: number,
  scroller: { current: HTMLElement | null },
  above: number,
): VirtualRows {
  const [, render] = useReducer((turn: number) => turn + 1, 0);
  const held = useRef<Virtualizer<HTMLElement, HTMLElement> | null>(null);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 12,
    scrollPaddingStart: above,
    initialRect: { width: 800, height: 600 },
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => render(0),
  };
  held.current ??= new Virtualizer<HTMLElement, HTMLElement>(options);
  const virtual = held.current;
  virtual.setOptions({ ...virtual.options, ...options });
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  return {
    items: virtual.getVirtualItems(),
    height: virtual.getTotalSize(),
    scrollTo: (index) => virtual.scrollToIndex(index, { align: "auto" }),
  };
}
