// SPDX-License-Identifier: Apache-2.0
// A picture inside a page: shapes with classes of the page's style sheet, texts escaped. Lengths
// are in units of the picture, which the page scales to its width.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cufit::report {

class Svg {
 public:
  using Points = std::vector<std::pair<double, double>>;

  // `label` is read aloud in place of the picture.
  Svg(std::string_view classes, int width, int height, std::string_view label);

  void line(const char* classes, double x1, double y1, double x2, double y2);
  void rect(const char* classes, double x, double y, double width, double height,
            std::string_view title = {});
  void text(const char* classes, double x, double y, std::string_view text);
  void polyline(const char* classes, const Points& points);
  void area(const char* classes, const Points& points);  // closed
  void disc(const char* classes, double x, double y, double radius, std::string_view title = {});
  void triangle(const char* classes, double x, double y, double radius,
                std::string_view title = {});
  std::string finish();

 private:
  void close(const char* element, std::string_view title);
  std::string out_;
};

}  // namespace cufit::report
