// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/format.h"
#include "report/report.h"
#include "unit/report/sample.h"

namespace cufit::report {
namespace html_test {

std::string page(const testing::World& world, const std::string& lang = "en") {
  Style style;
  style.lang = lang;
  return doctor_html(world.view(), style);
}

TEST(DoctorHtml, StandsAlone) {
  std::string html = lower(page(testing::broken()));
  for (const char* forbidden : {"<script", "<link", "<img", "<iframe", " src=", " href=", "url(",
                                "@import", "@font-face", " onload", "javascript:"}) {
    EXPECT_EQ(html.find(forbidden), std::string::npos) << forbidden;
  }
  for (const char* needed :
       {"<!doctype html>", "<meta charset=\"utf-8\">", "content-security-policy", "viewport",
        "prefers-color-scheme:dark", "@media print", "<details"}) {
    EXPECT_NE(html.find(needed), std::string::npos) << needed;
  }
}

TEST(DoctorHtml, NamesItsLanguage) {
  EXPECT_NE(page(testing::broken()).find("<html lang=\"en\">"), std::string::npos);
  std::string zh = page(testing::broken(), "zh");
  EXPECT_NE(zh.find("<html lang=\"zh-CN\">"), std::string::npos);
  EXPECT_NE(zh.find("<title>不行：PyTorch 不能在本机的 GPU 上运行</title>"), std::string::npos);
}

TEST(DoctorHtml, SaysWhatTheTextSays) {
  std::string html = page(testing::broken());
  for (const char* part :
       {"PyTorch will not run on this machine&#39;s GPU", "The driver is too old for CUDA 12.1",
        "<code>/sys/module/nvidia/version</code>: 520.61.05",
        "<pre><code>/opt/venv/bin/python -m pip install torch --index-url",
        "<span class=\"word\">broken</span>", "envs[0].torch.version"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

TEST(DoctorHtml, EscapesEverythingFromOutside) {
  const std::string evil = "<script>alert('x')</script>\"&`<b>`";
  testing::World world = testing::broken();
  world.facts.envs[0].path = world.report.chains[0].env = evil;
  world.facts.envs[0].torch.version = known<std::string>(evil, SourceKind::file, evil);
  world.facts.system.distribution = known<std::string>(evil, SourceKind::file, evil);
  world.facts.system.secure_boot = missing<bool>(WhyNot::malformed, SourceKind::file, evil, evil);
  world.facts.problems = {evil};
  world.report.chains[0].gpu = evil;
  world.report.chains[0].links[1].args["what"] = evil;
  world.report.chains[0].links[1].evidence[0] = {evil, evil, evil};
  world.report.abilities = {testing::link(evil, checks::LinkState::ok, evil)};
  world.report.host_limits = {testing::link(evil, checks::LinkState::ok, evil)};
  checks::Finding& finding = world.report.findings[0];
  finding.subject = finding.unknown_because = evil;
  finding.args["have"] = finding.args["cuda"] = finding.args["command"] = evil;
  finding.evidence[0] = {evil, evil, evil};
  finding.consequences = {evil};
  world.report.findings.push_back(finding);
  world.report.findings.back().id = evil;
  std::string html = page(world);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("<b>`"), std::string::npos);
  EXPECT_EQ(html.find("alert('"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(&#39;x&#39;)"), std::string::npos);
}

}  // namespace html_test
}  // namespace cufit::report
