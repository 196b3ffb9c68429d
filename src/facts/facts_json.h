// SPDX-License-Identifier: Apache-2.0
// Facts as JSON text: the payload of recordings (`--record`, `--from`), the `facts` member of
// doctor's JSON, and what the driver child sends to its parent.
//
// A Fact is {"value": ..., "source": {"kind": "file", "detail": "/sys/..."}} or, when missing,
// {"missing": "no_permission", "source": {...}, "note": "..."}; a fact that was never asked is left
// out. Members with empty text, empty list, false or 0 are left out as well: absent means the
// default of facts.h.
//
// Reading accepts any JSON from outside: unknown members are ignored (a newer cufit wrote them),
// wrong types are Error{malformed} that names the member ("nvml.gpus[2].name").
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "facts/facts.h"

namespace cufit::facts {

std::string facts_to_json(const Facts& facts, int indent = 1);
Json facts_value(const Facts& facts);
// Also takes doctor's JSON: its `facts` member. Error{unsupported} for any other schema.
Result<Facts> facts_from_json(std::string_view text, const std::string& name);
// The text as an object; Error{malformed} names the byte.
Result<Json> read_json_object(std::string_view text, const std::string& name);
// The same of a text that was read.
Result<Facts> facts_from_value(const Json& json, const std::string& name);

// Parts, for the pipe between the driver child and its parent (no indentation, no newline).
std::string nvml_to_json(const NvmlFacts& nvml);
Result<NvmlFacts> nvml_from_json(std::string_view text);
std::string cuda_to_json(const CudaFacts& cuda);
Result<CudaFacts> cuda_from_json(std::string_view text);

}  // namespace cufit::facts
