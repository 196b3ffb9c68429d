// SPDX-License-Identifier: Apache-2.0
// Schema cufit.inspect/1. null where a file needs nothing or does not tell; English texts.
#include "report/inspect.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

Json code_json(const formats::DeviceCode& code) {
  return Json{{"kind", formats::to_string(code.kind)},
              {"arch", code.arch},
              {"ptx_isa", or_null(code.ptx_isa)},
              {"count", code.count}};
}

Json verdict_json(const InspectVerdict& verdict, const knowledge::Knowledge& knowledge) {
  const char* state =
      verdict.verdict == checks::LinkState::ok ? "works" : checks::to_string(verdict.verdict);
  return Json{{"gpu", verdict.gpu},
              {"cc", verdict.cc},
              {"match", checks::to_string(verdict.match.match)},
              {"verdict", state},
              {"arch", or_null(verdict.match.arch)},
              {"detail", inspect_detail(verdict, "en", knowledge)}};
}

Json file_json(const InspectedFile& file, const knowledge::Knowledge& knowledge) {
  const formats::ElfFile& elf = file.elf;
  Json out{{"path", file.path}, {"kind", "elf"}};
  out["device_code"] = Json::array();
  for (const formats::DeviceCode& code : elf.device_code)
    out["device_code"].push_back(code_json(code));
  if (file.seen_bytes > 0) out["seen_bytes"] = file.seen_bytes;
  out["needed"] = elf.needed;
  out["rpath"] = elf.rpath;
  out["runpath"] = elf.runpath;
  out["glibc"] = or_null(elf.glibc);
  out["glibcxx"] = or_null(elf.glibcxx);
  out["cxx11_abi"] = elf.cxx11_abi ? Json(*elf.cxx11_abi) : Json(nullptr);
  out["verdicts"] = Json::array();
  for (const InspectVerdict& verdict : file.verdicts)
    out["verdicts"].push_back(verdict_json(verdict, knowledge));
  out["damage"] = Json::array();
  for (const formats::Damage& damage : elf.damage)
    out["damage"].push_back(Json{{"offset", damage.offset}, {"what", damage.what}});
  return out;
}

Json variant_json(const InspectedVariant& one) {
  Json out{{"path", one.path}, {"label", one.variant.label}};
  out["properties"] = Json::array();
  for (const formats::VariantFeature& feature : one.variant.features)
    for (const std::string& value : feature.values)
      out["properties"].push_back(formats::property_text(feature, value));
  out["fits"] = Json::array();
  for (const InspectedVariant::Fit& fit : one.fits)
    out["fits"].push_back(Json{{"gpu", fit.gpu}, {"cc", fit.cc}, {"fit", to_string(fit.fit)}});
  return out;
}

}  // namespace

std::string inspect_json(const InspectResult& result, const knowledge::Knowledge& knowledge) {
  Json out{{"schema", "cufit.inspect/1"}};
  put_tables(out, knowledge);
  out["files"] = Json::array();
  for (const InspectedFile& file : result.files) out["files"].push_back(file_json(file, knowledge));
  if (!result.variants.empty()) out["variants"] = Json::array();
  for (const InspectedVariant& one : result.variants) out["variants"].push_back(variant_json(one));
  out["errors"] = Json::array();
  for (const InspectError& error : result.errors)
    out["errors"].push_back(Json{{"path", error.path}, {"what", error.what}});
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
