// SPDX-License-Identifier: Apache-2.0
#include "report/export/export_template.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::report {
namespace export_template_test {

// YAML 1.1 ends a line at NEL, U+2028 and U+2029 as well; a terminal obeys ESC.
TEST(ExportTemplate, AValueInACommentIsOneLine) {
  Scope scope;
  scope.values = {{"version", "1\nRUN evil"},
                  {"classes", "a\xc2\x85one: 1 \xe2\x80\xa8two: 2 \xe2\x80\xa9three: 3 \x1b[31m"}};
  const std::string text =
      fill_template("@note made\n", scope, "en", knowledge::Knowledge::builtin());
  EXPECT_NE(text.find("(1 RUN evil)"), std::string::npos) << text;
  for (const char* end : {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9", "\x1b"})
    EXPECT_EQ(text.find(end), std::string::npos) << text;
  for (const std::string_view line : split(text, '\n'))
    EXPECT_TRUE(line.empty() || starts_with(line, "# ")) << line;
}

}  // namespace export_template_test
}  // namespace cufit::report
