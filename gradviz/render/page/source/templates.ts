/* Sentences with places, filled from facts: the templates are those of Python, which come
with the data. `gradviz/render/words/templates.py` says what stands in one. */

/** A sentence: words, and the nodes and passes that it names, by their places. */
export type Sentence = readonly (string | Named)[];
export type Named =
  /** Of another pass than the one that is told of, with its place. */
  | { readonly node: number; readonly task?: number | undefined }
  | { readonly pass: number };

/** What is known, by name; what is not known is undefined or null. */
export type Facts = Readonly<Record<string, unknown>>;

/** How facts are written, by the name behind the colon of a place. */
export type Forms = Readonly<Record<string, (fact: never) => Sentence>>;

/** The sentence of a template; null where the facts for it are not known. */
export function fill(template: string, facts: Facts, forms: Forms): Sentence | null {
  // Of the parts the odd ones are clauses in brackets.
  const parts = template
    .split(/\[([^\]]*)\]/)
    .map((part) => filled(part, facts, forms));
  if (parts.some((part, at) => part === null && at % 2 === 0)) return null;
  return parts.flatMap((part) => part ?? []);
}

/** The first sentence that can be filled; null where none can. */
export function firstFilled(
  templates: readonly string[],
  facts: Facts,
  forms: Forms,
): Sentence | null {
  for (const template of templates) {
    const said = fill(template, facts, forms);
    if (said) return said;
  }
  return null;
}

function filled(part: string, facts: Facts, forms: Forms): Sentence | null {
  const said: (string | Named)[] = [];
  // Text, then for each place its name, its kind, the rest of it, and the text behind.
  const pieces = part.split(/\{(\w+)([:=])([^}]*)\}/);
  for (let at = 0; at < pieces.length; at += 4) {
    if (pieces[at]) said.push(pieces[at]);
    if (at + 1 === pieces.length) break;
    const [name, kind, rest] = pieces.slice(at + 1, at + 4);
    const fact = facts[name] ?? null;
    if (kind === "=" ? fact !== rest : fact === null) return null;
    if (kind === ":") said.push(...(forms[rest] as (fact: unknown) => Sentence)(fact));
  }
  return said;
}
