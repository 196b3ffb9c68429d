// SPDX-License-Identifier: Apache-2.0
#include "report/fit_curve.h"

#include <algorithm>

#include "base/format.h"
#include "report/html/axis.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_fit_curve_size = 11;
constexpr int k_least_width = 76;    // of the terminal; narrower ones get bars
constexpr size_t k_least_rows = 10;  // of the plot

// Marks of the plot; each says by itself what it is, colour repeats it.
constexpr char k_point = 'o', k_upper = '+', k_both = '*', k_between = '.', k_limit = '-';

// A grid of characters, row 0 on top.
class Grid {
 public:
  Grid(size_t columns, size_t rows) : columns_(columns), rows_(rows, std::string(columns, ' ')) {}

  // The row of `bytes` where the top stands for `most`.
  size_t row_of(uint64_t bytes, uint64_t most) const {
    const double part = static_cast<double>(bytes) / static_cast<double>(most);
    const auto up = static_cast<size_t>(part * static_cast<double>(rows_.size() - 1) + 0.5);
    return rows_.size() - 1 - std::min(up, rows_.size() - 1);
  }
  size_t column_of(uint64_t batch, uint64_t most) const {
    const double part = static_cast<double>(batch) / static_cast<double>(most);
    return std::min(static_cast<size_t>(part * static_cast<double>(columns_ - 1) + 0.5),
                    columns_ - 1);
  }
  char& at(size_t column, size_t row) { return rows_[row][column]; }
  const std::string& row(size_t number) const { return rows_[number]; }
  size_t columns() const { return columns_; }
  size_t rows() const { return rows_.size(); }

 private:
  size_t columns_;
  std::vector<std::string> rows_;
};

class CurvePainter : private TerminalWriter {
 public:
  CurvePainter(const FitView& view, const Style& style)
      : TerminalWriter(view.knowledge, style),
        view_(view),
        card_(fit::first_asked(view.answer.cards)) {}

  std::string paint() {
    if (view_.answer.curve.size() < 2) return {};
    for (const fit::CurvePoint& point : view_.answer.curve) {
      most_ = std::max(most_, point.peak_reserved_upper);
      most_batch_ = std::max(most_batch_, point.batch);
    }
    uint64_t scale = most_;
    if (card_ != nullptr) scale = std::max(scale, std::min(card_->usable, most_ + most_ / 4));
    // What the card leaves is drawn where it is near enough.
    limit_ = card_ != nullptr && card_->usable <= scale;
    scale_ = scale;
    first_ = std::max(columns(say("fit.column.batch")), 7);
    const bool wide = width_ >= k_least_width;
    const std::string name = std::string(wide ? "fit.heading.plot" : "fit.heading.curve");
    heading(say(name + (limit_ ? "_card" : ""), {{"card", limit_ ? card_->name : ""}}));
    if (wide)
      plot();
    else
      bars();
    return std::move(out_);
  }

 private:
  std::string head() const {
    return "  " + right(say("fit.column.batch"), first_) +
           right(say("fit.column.reserved"), k_fit_curve_size) +
           right(say("fit.column.upper"), k_fit_curve_size);
  }
  std::string numbers(const fit::CurvePoint& point) const {
    return "  " + right(thousands(point.batch), first_) +
           right(gib(point.peak_reserved), k_fit_curve_size) +
           right(gib(point.peak_reserved_upper), k_fit_curve_size);
  }
  bool over(const fit::CurvePoint& point) const {
    return card_ != nullptr && point.peak_reserved_upper > card_->usable;
  }

  // One bar for each batch size: '#' to the point value, '+' to the upper one; '|' what a card
  // leaves.
  void bars() {
    out_ += coloured(head(), "1") + "\n";
    const int room = std::max(width_ - first_ - 2 * k_fit_curve_size - 4, 10);
    const auto at = [&](uint64_t bytes) {
      return static_cast<size_t>(static_cast<double>(bytes) / static_cast<double>(scale_) *
                                 static_cast<double>(room - 1));
    };
    for (const fit::CurvePoint& point : view_.answer.curve) {
      std::string bar(at(point.peak_reserved), '#');
      bar += std::string(at(point.peak_reserved_upper) - bar.size(), '+');
      if (limit_) {
        bar.resize(std::max(bar.size(), at(card_->usable) + 1), ' ');
        bar[at(card_->usable)] = '|';
      }
      out_ += numbers(point) + "  " + coloured(bar, limit_ && over(point) ? "31" : "32") + "\n";
    }
  }

  // The numbers on the left, batch size to the right and memory upwards beside them.
  void plot() {
    const std::vector<uint64_t> ticks = byte_ticks(scale_, 5);
    int label = 0;
    for (const uint64_t tick : ticks) label = std::max(label, columns(byte_tick_text(tick)));
    const int left = first_ + 2 * k_fit_curve_size + 2;
    const auto room = static_cast<size_t>(width_ - left - label - 6);
    Grid grid(room, std::max(k_least_rows, view_.answer.curve.size()));
    draw(grid);
    for (size_t row = 0; row < grid.rows() + 2; ++row) {
      const std::string text = row == 0 ? head()
                               : row <= view_.answer.curve.size()
                                   ? numbers(view_.answer.curve[row - 1])
                                   : blanks(left);
      std::string line = row == 0 ? coloured(text, "1") : text;
      line += "  ";
      if (row < grid.rows())
        line += right(label_of(grid, ticks, row), label) + " |" + coloured_row(grid.row(row));
      else if (row == grid.rows())
        line += blanks(label + 1) + "+" + std::string(room, '-');
      else
        line += blanks(label + 2) + batches(grid);
      out_ += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  }

  void draw(Grid& grid) const {
    const std::vector<fit::CurvePoint>& curve = view_.answer.curve;
    for (size_t i = 1; i < curve.size(); ++i) {
      const size_t first = grid.column_of(curve[i - 1].batch, most_batch_);
      const size_t end = grid.column_of(curve[i].batch, most_batch_);
      for (size_t column = first + 1; column < end; ++column) {
        const double part = static_cast<double>(column - first) / static_cast<double>(end - first);
        const double from = static_cast<double>(curve[i - 1].peak_reserved);
        const double to = static_cast<double>(curve[i].peak_reserved);
        const auto bytes = static_cast<uint64_t>(from + (to - from) * part);
        grid.at(column, grid.row_of(bytes, scale_)) = k_between;
      }
    }
    if (limit_)
      for (size_t column = 0; column < grid.columns(); ++column)
        grid.at(column, grid.row_of(card_->usable, scale_)) = k_limit;
    for (const fit::CurvePoint& point : curve)
      grid.at(grid.column_of(point.batch, most_batch_),
              grid.row_of(point.peak_reserved_upper, scale_)) = k_upper;
    for (const fit::CurvePoint& point : curve) {
      char& mark = grid.at(grid.column_of(point.batch, most_batch_),
                           grid.row_of(point.peak_reserved, scale_));
      mark = mark == k_upper || mark == k_both ? k_both : k_point;
    }
  }

  std::string label_of(const Grid& grid, const std::vector<uint64_t>& ticks, size_t row) const {
    for (const uint64_t tick : ticks)
      if (grid.row_of(tick, scale_) == row) return byte_tick_text(tick);
    return {};
  }

  // Runs of the same kind in one colour.
  std::string coloured_row(const std::string& row) const {
    std::string out;
    for (size_t i = 0; i < row.size();) {
      const size_t end = std::min(row.find_first_not_of(row[i], i), row.size());
      const std::string run = row.substr(i, end - i);
      const char mark = row[i];
      out += mark == ' ' ? run
                         : coloured(run, mark == k_limit                     ? "31"
                                         : mark == k_point || mark == k_both ? "32"
                                         : mark == k_upper                   ? "33"
                                                                             : "2");
      i = end;
    }
    return out;
  }

  std::string batches(const Grid& grid) const {
    std::string line(grid.columns() + 1, ' ');
    size_t free = 0;
    for (const uint64_t tick : count_ticks(most_batch_, static_cast<unsigned>(line.size() / 9))) {
      const std::string text = thousands(tick);
      size_t from = grid.column_of(tick, most_batch_);
      from = from < text.size() / 2 ? 0 : from - text.size() / 2;
      from = std::min(from, line.size() - text.size());
      if (from < free) continue;
      line.replace(from, text.size(), text);
      free = from + text.size() + 1;
    }
    return line;
  }

  const FitView& view_;
  const fit::CardAnswer* card_;
  uint64_t most_ = 1, most_batch_ = 1, scale_ = 1;
  bool limit_ = false;
  int first_ = 0;
};

}  // namespace

std::string fit_curve(const FitView& view, const Style& style) {
  return CurvePainter(view, style).paint();
}

}  // namespace cufit::report
