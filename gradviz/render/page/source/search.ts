import type { Page } from "./data.ts";
import type { Store } from "./store.ts";

export function mountSearch(element: HTMLElement, page: Page, store: Store): void {
  void [element, page, store];
}
