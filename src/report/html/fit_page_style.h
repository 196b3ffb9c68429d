// SPDX-License-Identifier: Apache-2.0
// What fit's page adds to the style sheet of html_style.h. Colours of parts have a contrast of
// 3 : 1 or more to the ground in both schemes, and a number stands in each.
#pragma once

namespace cufit::report {

inline constexpr const char* k_fit_page_style = R"css(
:root{--c0:#3b5bdb;--c1:#0b7285;--c2:#2b8a3e;--c3:#c2410c;--c4:#a15c00;--c5:#9c36b5;--c6:#5c7080;--c7:#6741d9;
--c8:#495057;--c9:#c92a2a;--c10:#687078;--on:#fff}
@media (prefers-color-scheme:dark){:root{--c0:#8ea2ff;--c1:#3bc9db;--c2:#69db7c;--c3:#ff922b;--c4:#fcc419;--c5:#e599f7;
--c6:#a5b4c0;--c7:#b197fc;--c8:#adb5bd;--c9:#ff8787;--c10:#868e96;--on:#10141a}}
svg{display:block;width:100%;height:auto}
svg.narrow{display:none}
svg text{fill:var(--soft);font-size:13px;font-family:inherit}
svg .end{text-anchor:end}svg .middle{text-anchor:middle}
svg .grid{stroke:var(--line);stroke-width:1}
svg .axis{font-size:14px}
svg .band{fill:var(--c4);opacity:.18}
svg polyline{fill:none;stroke-width:2}
svg polyline.point{stroke:var(--c0)}svg polyline.upper{stroke:var(--c4);stroke-dasharray:6 4}
svg .point.mark{fill:var(--c0)}svg .upper.mark{fill:var(--c4)}
svg .chosen{stroke:var(--soft);stroke-dasharray:2 4}
svg .limit{stroke:var(--broken);stroke-width:1.5;stroke-dasharray:10 3}svg text.limit_name{fill:var(--broken)}
svg .allocated{fill:var(--c0);opacity:.32}svg polyline.reserved{stroke:var(--c3)}
svg .step{stroke:var(--soft);stroke-dasharray:3 3}
svg .peak{stroke:var(--ink)}svg .peak.mark{fill:var(--ink)}svg text.peak_name{fill:var(--ink);font-weight:600}
svg .phase.setup{fill:var(--c6)}svg .phase.forward{fill:var(--c2)}svg .phase.backward{fill:var(--c5)}
svg .phase.optimizer{fill:var(--c4)}svg .phase.validation{fill:var(--c1)}svg .phase.other{fill:var(--line)}
svg text.phase_name{fill:var(--on);font-size:11px}
svg.parts{border-radius:8px}
svg text.part_name{fill:var(--on);font-size:18px;font-weight:600}
svg .part{stroke:var(--card);stroke-width:1}
.p0{fill:var(--c0);--p:var(--c0)}.p1{fill:var(--c1);--p:var(--c1)}.p2{fill:var(--c2);--p:var(--c2)}
.p3{fill:var(--c3);--p:var(--c3)}.p4{fill:var(--c4);--p:var(--c4)}.p5{fill:var(--c5);--p:var(--c5)}
.p6{fill:var(--c6);--p:var(--c6)}.p7{fill:var(--c7);--p:var(--c7)}.p8{fill:var(--c8);--p:var(--c8)}
.p9{fill:var(--c9);--p:var(--c9)}.p10{fill:var(--c10);--p:var(--c10)}
.legend{list-style:none;margin:14px 0 0;padding:0;display:grid;gap:6px}
.legend li{display:grid;grid-template-columns:26px minmax(8em,14em) 6em 4em 1fr;gap:10px;align-items:baseline}
.legend b,.share{text-align:right;font-variant-numeric:tabular-nums}.share,.beside{color:var(--soft);font-size:14px}
.swatch{background:var(--p);color:var(--on);border-radius:4px;text-align:center;font-size:13px;font-weight:600}
.key{display:flex;flex-wrap:wrap;gap:4px 18px;margin:10px 0 0;padding:0;list-style:none;color:var(--soft);font-size:14px}
.key i{display:inline-block;width:20px;height:12px;margin-right:6px;vertical-align:-1px;border-radius:2px}
.key .k_point{border-top:3px solid var(--c0);height:4px;vertical-align:3px}
.key .k_upper{border-top:3px dashed var(--c4);height:4px;vertical-align:3px}
.key .k_limit{border-top:2px dashed var(--broken);height:4px;vertical-align:3px}
.key .k_allocated{background:var(--c0);opacity:.45}
.key .k_reserved{border-top:3px solid var(--c3);height:4px;vertical-align:3px}
.key .forward{background:var(--c2)}.key .backward{background:var(--c5)}.key .optimizer{background:var(--c4)}
.key .setup{background:var(--c6)}.key .other{background:var(--line)}
.cards{display:grid;gap:14px;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr))}
.cards .card{margin:0;border-top:4px solid var(--tone)}
.cards .word{font-size:17px}
.meter{position:relative;height:14px;border-radius:7px;background:var(--code);overflow:hidden;margin:10px 0 8px}
.meter i{position:absolute;top:0;bottom:0;left:0;background:var(--tone)}
.meter i.more{opacity:.35}
table.numbers td,table.numbers th{min-width:0;font-variant-numeric:tabular-nums;padding-right:16px;font-size:14px}
table.numbers td:first-child{font-family:inherit}table.numbers td{vertical-align:middle}
table.numbers .n{text-align:right;white-space:nowrap}
table.numbers .bar{display:block;height:10px;border-radius:3px;background:var(--c3);min-width:2px}
table.numbers td.wide{width:45%}
table.numbers td:first-child{white-space:nowrap}table.numbers td.note{min-width:16em;color:var(--soft)}td .word{white-space:nowrap}
td .word.ok{color:var(--ok)}td .word.broken{color:var(--broken)}
.card>details{margin:0 0 8px}.key+details{margin-top:12px}
pre.plans{overflow-x:auto}pre.plans code{white-space:pre;overflow-wrap:normal;font-size:13px}
.warnings{margin:0;padding-left:20px}.warnings li{margin:4px 0;overflow-wrap:anywhere}
@media (max-width:620px){svg.wide{display:none}svg.narrow{display:block}
.legend li{grid-template-columns:26px 1fr auto 4em}.legend .beside{grid-column:2/-1}
table.numbers td,table.numbers th{padding-right:8px}table.numbers td.wide{width:25%}}
@media print{:root{--c0:#3b5bdb;--c1:#0b7285;--c2:#2b8a3e;--c3:#c2410c;--c4:#a15c00;--c5:#9c36b5;--c6:#5c7080;
--c7:#6741d9;--c8:#495057;--c9:#c92a2a;--c10:#687078;--on:#fff}}
)css";

}  // namespace cufit::report
