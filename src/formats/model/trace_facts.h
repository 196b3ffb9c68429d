// SPDX-License-Identifier: Apache-2.0
// A fact added to what a tracer wrote (trace_events.h), such as the batch size that only the caller
// knows: in the events that were read, and in the file, so that it answers the same when it is read
// again.
#pragma once

#include <string>
#include <string_view>

#include "formats/model/trace_events.h"

namespace cufit::formats {

// As if the tracer had said it last: events.fact(key) is `value` from now on.
void add_fact(TraceEvents& events, std::string_view key, std::string_view value);

// `file`: the bytes from which `read` comes, not compressed, with its record `end`; `read` as
// read_trace_events gave it, before add_fact. Error{malformed} where it has no end.
Result<std::string> with_fact(std::string file, const TraceEvents& read, std::string_view key,
                              std::string_view value);

}  // namespace cufit::formats
