// SPDX-License-Identifier: Apache-2.0
// The style sheet of the HTML page. Colours are chosen for a contrast of 4.5 : 1 or more on their
// ground in both schemes; state is always written as a word as well.
#pragma once

namespace cufit::report {

inline constexpr const char* k_page_style = R"css(
:root{--ground:#f6f7f9;--card:#fff;--ink:#1b1f24;--soft:#59636e;--line:#d9dee4;--code:#eef1f4;
--ok:#1a7f37;--limited:#8a5a00;--broken:#c0272d;--unknown:#0b6e8f;--note:#4051b5}
@media (prefers-color-scheme:dark){:root{--ground:#0f1216;--card:#181c22;--ink:#e7ebf0;--soft:#9aa5b1;--line:#2c333c;
--code:#232a33;--ok:#4cc36d;--limited:#e0a83c;--broken:#ff7b72;--unknown:#56b8d8;--note:#9aa8ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif}
main{max-width:980px;margin:0 auto;padding:32px 20px 48px}
.ok{--tone:var(--ok)}.limited{--tone:var(--limited)}.broken{--tone:var(--broken)}.unknown{--tone:var(--unknown)}
.note{--tone:var(--note)}
p{margin:0 0 8px}
header{background:var(--card);border:1px solid var(--line);border-top:6px solid var(--tone);border-radius:12px;
padding:22px 26px}
.question{color:var(--soft);margin:0}
h1{display:flex;align-items:center;gap:14px;margin:6px 0;color:var(--tone);font-size:40px;line-height:1.2}
h1 .disc{width:46px;height:46px;font-size:26px}
.sentence{font-size:20px}
.machine,.origin,.env,.others,footer{color:var(--soft);font-size:14px}
.machine,.origin{margin:0}
.origin{margin-top:8px;font-style:italic}
.disc{flex:none;display:inline-flex;align-items:center;justify-content:center;border-radius:50%;font-weight:700;
border:2px solid var(--tone);color:var(--tone);background:var(--card)}
section{margin-top:34px}
h2{font-size:20px;margin:0 0 12px}
h3{font-size:17px;line-height:1.4;margin:0 0 6px}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 22px;margin-bottom:14px;
break-inside:avoid}
.env{overflow-wrap:anywhere}
.chains{display:grid;gap:14px;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr))}
.chains .card{margin:0;border-top:4px solid var(--tone)}
.links{list-style:none;margin:12px 0 0;padding:0}
.card>.links:first-child{margin-top:0}
.links li{position:relative;display:flex;gap:12px;padding-bottom:10px}
.links li:last-child{padding-bottom:0}
.chains .links li:not(:last-child)::before{content:"";position:absolute;left:12px;top:26px;bottom:0;width:2px;
background:var(--line)}
.links .disc{width:26px;height:26px;font-size:14px}
.links div{min-width:0;flex:1}
.name{font-weight:600;margin:1px 0 0}
.word{color:var(--tone);font-weight:600;font-size:14px;white-space:nowrap}
.name .word{margin-left:6px}
.detail{color:var(--soft);margin:0;font-size:15px;overflow-wrap:anywhere}
details summary{cursor:pointer;color:var(--soft);font-size:13px}
.evidence{margin:2px 0 6px;padding-left:20px;font-size:14px;color:var(--soft);overflow-wrap:anywhere}
.evidence li{margin:2px 0}
.label{font-weight:700;margin:0}
.finding{border-left:5px solid var(--tone)}
.finding h3 .word{font-size:15px;margin-right:4px}
.finding p{overflow-wrap:anywhere}
.next{background:var(--ground);border-radius:8px;padding:10px 14px;margin:10px 0}
code{font:14px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;background:var(--code);
border-radius:4px;padding:1px 5px;overflow-wrap:anywhere}
pre{margin:8px 0;padding:10px 12px;background:var(--code);border-radius:8px}
pre code{padding:0;background:none;white-space:pre-wrap;overflow-wrap:anywhere}
.abilities{list-style:none;margin:8px 0 0;padding:0;display:grid;gap:8px}
.abilities li{display:grid;grid-template-columns:5.5em 4em 1fr;gap:8px;align-items:baseline}
ul.others{margin:0;padding-left:20px}
p.others{margin:14px 0 2px}
.facts{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 22px}
.facts summary{font-size:16px;color:var(--ink);font-weight:600}
.scroll{overflow-x:auto;margin-top:10px}
table{border-collapse:collapse;width:100%;font-size:13px}
th,td{text-align:left;vertical-align:top;padding:5px 12px 5px 0;border-top:1px solid var(--line);
overflow-wrap:anywhere;min-width:9em}
th{border-top:0;color:var(--soft)}
td:first-child{font-family:ui-monospace,Menlo,Consolas,monospace}
footer{margin-top:34px}
@media (max-width:560px){main{padding:14px 10px 32px}header,.card,.facts{padding:14px}h1{font-size:30px}
.sentence{font-size:18px}.abilities li{grid-template-columns:5.5em 4em 1fr}}
@media print{:root{--ground:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#bbb;--code:#f3f3f3;--ok:#1a7f37;
--limited:#8a5a00;--broken:#c0272d;--unknown:#0b6e8f;--note:#4051b5}body{font-size:11pt}main{max-width:none;padding:0}}
)css";

}  // namespace cufit::report
