// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/prose_machine.h"

#include <algorithm>
#include <initializer_list>

#include "base/format.h"
#include "formats/prose/gpu_words.h"
#include "formats/prose/platform_words.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr size_t k_max_mentions = 600, k_prose_machine_max_line = 4096,
                 k_prose_machine_max_value = 200;
constexpr size_t k_prose_machine_npos = std::string_view::npos;

struct System {
  std::string_view word, name;
};
constexpr System k_systems[] = {{"ubuntu", "Ubuntu"},
                                {"debian", "Debian"},
                                {"fedora", "Fedora"},
                                {"centos", "CentOS"},
                                {"rocky linux", "Rocky Linux"},
                                {"almalinux", "AlmaLinux"},
                                {"rhel", "Red Hat Enterprise Linux"},
                                {"nixos", "NixOS"},
                                {"linux mint", "Linux Mint"},
                                {"opensuse", "openSUSE"},
                                {"arch linux", "Arch Linux"},
                                {"manjaro", "Manjaro"},
                                {"amazon linux", "Amazon Linux"},
                                {"pop!_os", "Pop!_OS"},
                                {"windows server", "Windows Server"},
                                {"windows", "Windows"},
                                {"win10", "Windows 10"},
                                {"win11", "Windows 11"},
                                {"win 10", "Windows 10"},
                                {"win 11", "Windows 11"},
                                {"macos", "macOS"},
                                {"alpine linux", "Alpine Linux"}};

constexpr std::string_view k_repositories[] = {"nvidia/cuda:",
                                               "pytorch/pytorch:",
                                               "nvcr.io/",
                                               "vllm/vllm-openai",
                                               "rocm/pytorch",
                                               "/pytorch:",
                                               "tensorflow/tensorflow:",
                                               "ghcr.io/",
                                               "quay.io/",
                                               "dustynv/",
                                               "huggingface/transformers-"};

class ProseMachineReader {
 public:
  MachineWords read(std::span<const TextLine> lines) {
    for (const TextLine& line : lines) {
      if (out_.mentions.size() >= k_max_mentions) break;
      number_ = line.number;
      line_ = std::string_view(line.text).substr(0, k_prose_machine_max_line);
      low_ = lower(line_);
      take();
    }
    return std::move(out_);
  }

 private:
  void take() {
    if (has("pyth")) python();
    systems();
    if (has("linux") || has("kernel") || has("-generic") || has("microsoft")) kernel();
    if (has("glibc")) numbered(MachineWord::glibc, "glibc", 12);
    gpus();
    if (has("driver") || has("nvidia")) driver();
    for (std::string_view number : chinese_driver_numbers(line_)) add(MachineWord::driver, number);
    if (has("cuda") || has("release ") || has("nvcc")) cuda();
    if (has("gcc") || has("g++")) gcc();
    images();
    if (has("wsl") || has("microsoft-standard")) wsl();
    if (has("x86_64") || has("aarch64") || has("arm64")) architecture();
    if (has("l4t") || has("jetpack")) jetson();
    containers();
    if (has("secure boot") || has("secureboot")) secure_boot();
  }

  bool has(std::string_view word) const { return low_.find(word) != k_prose_machine_npos; }
  bool has_any(std::initializer_list<std::string_view> words) const {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return has(word); });
  }
  std::string_view from(size_t at) const { return line_.substr(std::min(at, line_.size())); }

  MachineMention* add(MachineWord what, std::string_view value, bool weak = false) {
    if (out_.mentions.size() >= k_max_mentions || value.size() > k_prose_machine_max_value)
      return nullptr;
    size_t seen = 0;
    for (auto it = out_.mentions.rbegin(); it != out_.mentions.rend() && seen < 100; ++it, ++seen)
      if (it->what == what && it->value == value && it->weak == weak && it->count == 0)
        return nullptr;
    out_.mentions.push_back({what, std::string(value), 0, 0, weak, number_});
    return &out_.mentions.back();
  }

  // "requires Python 3.10", "for CUDA 12.1", "driver 525 or newer": not of this machine.
  bool hedged(size_t at) const {
    std::string_view before =
        std::string_view(low_).substr(at > 30 ? at - 30 : 0, std::min<size_t>(at, 30));
    size_t cut = before.find_last_of(".;,)(|");
    if (cut != k_prose_machine_npos) before.remove_prefix(cut + 1);
    for (std::string_view word : {"require", "requires", "required", "need", "needs", "upgrade",
                                  "minimum", "least", "supports", "than", "worked", "works",
                                  "until", "since", "before", "built for", "compiled for"})
      if (has_word(before, word)) return true;
    return false;
  }

  // Each place where `word` is followed, within `reach` characters, by a dotted number.
  void numbered(MachineWord what, std::string_view word, size_t reach) {
    for (size_t at = find_word(low_, word); at != k_prose_machine_npos;
         at = find_word(low_, word, at + word.size())) {
      std::string_view rest = from(at + word.size());
      if (!rest.empty() && (rest[0] == '-' || rest[0] == '=')) rest = rest.substr(1);
      std::string_view value = value_after(rest);
      std::string_view number = dotted_number_at(value);
      if (!has_inner_dot(number) || rest.size() - value.size() > reach || hedged(at)) continue;
      add(what, number);
    }
  }

  void python() {
    for (size_t at = low_.find("python"); at != k_prose_machine_npos;
         at = low_.find("python", at + 6)) {
      std::string_view rest = from(at + 6);
      bool path = at > 0 && (line_[at - 1] == '/' || line_[at - 1] == '\\' || line_[at - 1] == 'c');
      if (at > 0 && is_name_char(line_[at - 1]) && !path) continue;
      if (path) {  // "lib/python3.10/", "cpython-310-x86_64"
        std::string_view number = dotted_number_at(rest);
        if (has_inner_dot(number)) add(MachineWord::python, number, true);
        if (line_[at - 1] == 'c' && rest.size() > 4 && rest[0] == '-' && rest[1] == '3') {
          std::string_view digits = dotted_number_at(rest.substr(1));
          if (digits.size() >= 2 && digits.size() <= 3)
            add(MachineWord::python, "3." + std::string(digits.substr(1)), true);
        }
        continue;
      }
      if (size_t have = rest.find("(you have "); have < 40) rest = rest.substr(have + 10);
      std::string_view value = value_after(rest);
      if (rest.size() - value.size() > 16 || hedged(at)) continue;
      std::string_view number = dotted_number_at(value);
      std::string_view behind = value.substr(number.size());
      if (!has_inner_dot(number) || (number[0] != '2' && number[0] != '3') || number[1] != '.')
        continue;
      if (!behind.empty() && (behind[0] == '+' || behind[0] == '/' ||
                              (behind[0] == '-' && behind.size() > 1 && is_digit(behind[1]))))
        continue;
      add(MachineWord::python, number);
    }
  }

  void systems() {
    for (const System& system : k_systems) {
      size_t at = find_word_fast(system.word);
      if (at == k_prose_machine_npos) continue;
      std::string_view rest = from(at + system.word.size());
      if (!rest.empty() && (rest[0] == '\\' || rest[0] == '/' || rest[0] == '.')) continue;
      if (at > 0 && (line_[at - 1] == '/' || line_[at - 1] == '\\' || line_[at - 1] == '-'))
        continue;
      std::string_view value = value_after(rest);
      std::string_view number = dotted_number_at(value);
      bool named = is_digit(system.name.back());
      if (named || number.empty() || number.size() > 8 || rest.size() - value.size() > 3) {
        add(MachineWord::system, system.name, !named);
      } else {
        add(MachineWord::system, std::string(system.name) + " " + std::string(number));
      }
      if (system.word == "windows server") break;
    }
    const std::string_view implied = implied_system(line_);
    if (!implied.empty()) add(MachineWord::system, implied, true);
  }
  size_t find_word_fast(std::string_view word) const {
    for (size_t at = low_.find(word); at != k_prose_machine_npos; at = low_.find(word, at + 1)) {
      size_t end = at + word.size();
      if ((at == 0 || !is_name_char(low_[at - 1])) &&
          (end == low_.size() || !is_name_char(low_[end])))
        return at;
    }
    return k_prose_machine_npos;
  }

  // "Linux host 5.15.0-91-generic #101", "kernel 6.13.4", "Linux-5.15.0-91-generic-x86_64",
  // "4.4.0-19041-Microsoft".
  void kernel() {
    std::vector<std::string_view> words = words_of(line_, 64);
    for (size_t i = 0; i < words.size(); ++i) {
      std::string_view word = words[i];
      if (size_t open = word.find_first_not_of("(\"'`"); open != k_prose_machine_npos)
        word.remove_prefix(open);
      bool prefixed = starts_with(word, "Linux-");
      if (prefixed) word.remove_prefix(6);
      size_t end = 0;
      while (end < word.size() && end < 80 &&
             (is_name_char(word[end]) || contains(".-+", word.substr(end, 1))))
        ++end;
      std::string_view text = word.substr(0, end);
      for (std::string_view tail : {"-x86_64", "-aarch64", "-with-glibc"})
        text = text.substr(0, text.find(tail));
      while (!text.empty() && !is_name_char(text.back())) text.remove_suffix(1);
      std::string_view number = dotted_number_at(text);
      if (!has_inner_dot(number) || number.size() > 20 || number[0] > '7' || number.find('.') > 2)
        continue;
      bool three = std::count(number.begin(), number.end(), '.') >= 2;
      bool flavour = three && (ends_with(text, "-generic") || contains(lower(text), "microsoft") ||
                               contains(text, ".el") || contains(text, "-arch") ||
                               contains(text, "-aws") || contains(text, "-tegra") ||
                               contains(text, "-amd64") || contains(text, "-lowlatency"));
      bool after_kernel =
          i > 0 && (equal_words(words[i - 1], "kernel") || equal_words(words[i - 1], "kernel:") ||
                    (three && equal_words(words[i - 1], "linux")));
      bool uname = i == 2 && three && words[0] == "Linux";
      if (flavour || after_kernel || uname || (prefixed && three)) add(MachineWord::kernel, text);
    }
  }

  void gpus() {
    if (has("grep")) return;  // what was looked for, not what is there
    if (line_.find('|') != k_prose_machine_npos && (has("mib /") || has(":00.0") || has("off  |")))
      return;
    bool elsewhere = has_any({"works on", "worked on", "works with", "another machine",
                              "other machine", "works fine on", "another pc"});
    for (GpuWords& gpu : find_gpu_words(line_)) {
      MachineMention* out = add(MachineWord::gpu, gpu.name, elsewhere);
      if (out) out->count = gpu.count, out->memory_gb = gpu.memory_gb;
    }
  }

  static bool is_driver(std::string_view number) {
    size_t dot = std::min(number.find('.'), number.size());
    return dot == 3 && number[0] >= '3' && number.size() <= 11;
  }
  void driver() {
    if (line_.find("NVIDIA-SMI ") != k_prose_machine_npos && has("version:"))
      return;  // the table's own reader
    for (std::string_view word : {"driver", "drivers", "open kernel modules", "kernel module",
                                  "open kernel module", "driver-version"}) {
      for (size_t at = find_word(low_, word); at != k_prose_machine_npos;
           at = find_word(low_, word, at + word.size())) {
        number_behind(at, word.size());
        if (starts_with(word, "driver")) number_before(at);
      }
    }
    for (std::string_view package : {"nvidia-driver-", "nvidia-dkms-", "nvidia-kernel-open-",
                                     "nvidia-linux-x86_64-", "nvidia-linux-aarch64-"}) {
      size_t at = low_.find(package);
      if (at == k_prose_machine_npos) continue;
      std::string_view number = dotted_number_at(from(at + package.size()));
      if (is_driver(number)) add(MachineWord::driver, number, true);
    }
  }
  void number_behind(size_t at, size_t length) {
    std::string_view rest = from(at + length);
    std::string_view value = value_after(rest);
    if (rest.size() == value.size() || rest.size() - value.size() > 16 || hedged(at)) return;
    std::string_view number = dotted_number_at(value);
    if (!is_driver(number)) return;
    std::string_view behind = value.substr(number.size());
    if (!behind.empty() && (behind[0] == '+' || behind[0] == '%' || is_letter(behind[0]))) return;
    add(MachineWord::driver, number, !has_inner_dot(number));
  }
  void number_before(size_t at) {  // "The 535.129.03 NVIDIA driver", "first 525 driver releases"
    std::vector<std::string_view> words =
        words_of(line_.substr(at > 32 ? at - 32 : 0, std::min<size_t>(at, 32)), 32);
    if (!words.empty() && equal_words(words.back(), "nvidia")) words.pop_back();
    if (words.empty()) return;
    std::string_view number = dotted_number_at(words.back());
    if (number.size() == words.back().size() && is_driver(number) && !hedged(at))
      add(MachineWord::driver, number, !has_inner_dot(number));
  }

  void cuda() {
    // "Cuda compilation tools, release 11.8, V11.8.89", "nvcc release 10.1, V10.1.243"
    if (size_t at = low_.find("release ");
        at != k_prose_machine_npos && has_any({"cuda compilation", "nvcc", ", v"})) {
      std::string_view number = dotted_number_at(from(at + 8));
      size_t exact = low_.find(", v", at);
      if (exact != k_prose_machine_npos && exact - at < 20 &&
          has_inner_dot(dotted_number_at(from(exact + 3))))
        number = dotted_number_at(from(exact + 3));
      if (has_inner_dot(number)) add(MachineWord::toolkit, number);
      return;
    }
    if (has("nvcc") && !has("fatal")) numbered(MachineWord::toolkit, "nvcc", 12);
    for (std::string_view path : {"/usr/local/cuda-", "cuda\\v"}) {
      for (size_t at = low_.find(path); at != k_prose_machine_npos;
           at = low_.find(path, at + path.size())) {
        std::string_view number = dotted_number_at(from(at + path.size()));
        if (has_inner_dot(number)) add(MachineWord::toolkit, number, true);
      }
    }
    if (line_.find("NVIDIA-SMI ") != k_prose_machine_npos && has("driver version")) return;
    for (size_t at = find_word(low_, "cuda"); at != k_prose_machine_npos;
         at = find_word(low_, "cuda", at + 4)) {
      std::string_view rest = from(at + 4);
      std::string_view value = value_after(rest);
      std::string_view number = dotted_number_at(value);
      size_t dot = std::min(number.find('.'), number.size());
      if (number.empty() || dot > 2 || number.size() > 8 || rest.size() == value.size() ||
          rest.size() - value.size() > 24 || hedged(at) || (at > 0 && line_[at - 1] == '/'))
        continue;
      bool smi = has("nvidia-smi") || has("nvidia_smi");
      bool unit = value.size() > number.size() && is_letter(value[number.size()]);
      if (!unit) add(smi ? MachineWord::driver_cuda : MachineWord::cuda, number);
    }
  }

  void gcc() {
    for (std::string_view word : {"gcc", "g++"}) {
      size_t at = find_word(low_, word);
      if (at == k_prose_machine_npos || (at > 0 && line_[at - 1] == '['))
        continue;  // Python's banner
      std::string_view rest = from(at + word.size());
      size_t close = rest.find(") ");
      if (starts_with(trim(rest), "(") && close < 80)
        rest = rest.substr(close + 1);  // "(Ubuntu 9.4.0) 9.4.0"
      std::string_view value = value_after(rest), number = dotted_number_at(value);
      if (has_inner_dot(number) && rest.size() - value.size() <= 12 && !hedged(at))
        add(MachineWord::gcc, number);
    }
  }

  void images() {
    if (!has_any({":", "from "})) return;
    bool named = has_any({"docker pull", "container:", "image:"}) || starts_with(line_, "FROM ");
    if (!named && line_.find('/') == k_prose_machine_npos) return;
    std::vector<std::string_view> words = words_of(line_, 128);
    for (size_t i = 0; i < words.size(); ++i) {
      std::string_view word = words[i];
      while (!word.empty() && contains("'\"`(,", word.substr(0, 1))) word.remove_prefix(1);
      while (!word.empty() && contains("'\"`),;.", word.substr(word.size() - 1)))
        word.remove_suffix(1);
      if (word.size() < 4 || word.size() > k_prose_machine_max_value || contains(word, "://") ||
          contains(word, "="))
        continue;
      bool asked =
          i > 0 && (words[i - 1] == "pull" || words[i - 1] == "FROM" ||
                    equal_words(words[i - 1], "image:") || equal_words(words[i - 1], "container:"));
      bool known = contains(word, ":") &&
                   std::any_of(std::begin(k_repositories), std::end(k_repositories),
                               [&](std::string_view each) { return contains(word, each); });
      if (known || (asked && (contains(word, "/") || contains(word, ":")) && word[0] != '/'))
        add(MachineWord::image, word);
    }
  }

  void wsl() {
    if (has("microsoft-standard") || find_word(low_, "wsl2") != k_prose_machine_npos ||
        has("-wsl2"))
      add(MachineWord::wsl, "2");
    if (find_word(low_, "wsl1") != k_prose_machine_npos) add(MachineWord::wsl, "1");
    for (size_t at = find_word(low_, "wsl"); at != k_prose_machine_npos;
         at = find_word(low_, "wsl", at + 3)) {
      std::string_view number = dotted_number_at(value_after(from(at + 3)));
      if (number == "1" || number == "2")
        add(MachineWord::wsl, number);
      else
        add(MachineWord::wsl, "", true);
    }
  }

  void architecture() {
    for (std::string_view word : {"x86_64", "aarch64", "arm64"}) {
      size_t at = find_word_fast(word);
      if (at == k_prose_machine_npos) continue;
      bool inside = (at > 0 && !contains(" (\t,", line_.substr(at - 1, 1))) ||
                    (at + word.size() < line_.size() &&
                     !contains(" ),.;\t", line_.substr(at + word.size(), 1)));
      add(MachineWord::architecture, word == "arm64" ? "aarch64" : word, inside);
    }
  }

  void jetson() {
    for (std::string_view word : {"L4T", "JetPack"}) {
      size_t at = find_word(line_, word);
      if (at == k_prose_machine_npos) continue;
      std::string_view value = value_after(from(at + word.size()));
      std::string_view letter = !value.empty() && value[0] == 'R' ? "R" : "";
      std::string_view number = dotted_number_at(value.substr(letter.size()));
      if (has_inner_dot(number))
        add(MachineWord::jetson,
            std::string(word) + " " + std::string(letter) + std::string(number));
    }
  }

  void containers() {
    if (has_any({"docker run", "docker exec", "podman run", "nvidia-docker", "in docker",
                 "docker environment", "docker image", "docker container", "docker desktop",
                 "the docker", "docker:"}))
      add(MachineWord::container, "docker");
    if (has_any({"kubernetes", "k8s", "kubectl", "pod spec"}))
      add(MachineWord::container, "kubernetes");
    if (has_any({"singularity exec", "apptainer", "singularity run"}))
      add(MachineWord::container, "apptainer");
    if (has_any({"lxd container", "lxc container"})) add(MachineWord::container, "lxc");
  }

  void secure_boot() {
    if (has_any({"secure boot enabled", "secureboot enabled", "secure boot is enabled",
                 "secure boot: enabled", "secure boot on"}))
      add(MachineWord::secure_boot, "enabled");
    if (has_any({"secure boot disabled", "secureboot disabled", "secure boot is disabled",
                 "secure boot: disabled", "secure boot off"}))
      add(MachineWord::secure_boot, "disabled");
  }

  MachineWords out_;
  std::string_view line_;
  std::string low_;
  uint64_t number_ = 0;
};

}  // namespace

MachineWords parse_machine_words(std::span<const TextLine> lines) {
  return ProseMachineReader().read(lines);
}

}  // namespace cufit::formats
