"""Pictures, tables and pages of the findings of `analysis`.

In: plain values of `analysis`. Out: text, SVG, DOT, HTML, and PNG or PDF by
`conversion`. No renderer imports another. Read `words`; `style`, which has the colors;
`layout`, `graph`, `timeline`, `charts`; `animation`, for pictures that move; then
`terminal`, `replay`, `film`, `page`.
"""
