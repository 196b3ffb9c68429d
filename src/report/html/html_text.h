// SPDX-License-Identifier: Apache-2.0
// Text as HTML: everything from outside goes through one of these.
#pragma once

#include <string>
#include <string_view>

namespace cufit::report {

std::string escape_html(std::string_view text);
// Escapes and turns `quoted` spans into <code>.
std::string rich_html(std::string_view text);

// From the doctype to <style>, the style sheet and <main>: no script, nothing from elsewhere (a
// Content-Security-Policy says so too), light and dark by the reader's setting. `title` is not
// escaped yet; `more_style` is CSS of ours.
std::string html_head(std::string_view title, std::string_view lang, std::string_view more_style);

}  // namespace cufit::report
