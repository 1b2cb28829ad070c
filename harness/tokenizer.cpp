#include "harness/tokenizer.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "harness/locations.h"

namespace shardproof {
namespace {

// A file without a name, gone when it is closed. Unlike a pipe it never makes anyone wait.
class Scratch {
 public:
  explicit Scratch(const std::string& content = "") : file_(std::tmpfile(), &std::fclose) {
    SP_VALIDATE(file_ != nullptr, "a temporary file could not be made: {}", std::strerror(errno));
    SP_VALIDATE(std::fwrite(content.data(), 1, content.size(), file_.get()) == content.size() &&
                    std::fflush(file_.get()) == 0,
                "a temporary file could not be written: {}", std::strerror(errno));
    std::rewind(file_.get());
  }
  int descriptor() const { return fileno(file_.get()); }
  std::string read() const {
    std::rewind(file_.get());
    std::string content(4096, '\0');
    std::string all;
    while (const size_t count = std::fread(content.data(), 1, content.size(), file_.get()))
      all.append(content, 0, count);
    return all;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

// The exit status, or 128 + the signal that ended it; InputError where it cannot be started.
int run_to_end(std::vector<std::string> command, const Scratch& in, const Scratch& out,
               const Scratch& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  SP_VALIDATE(failed == 0, "{} could not be started: {}", command[0], std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    SP_VALIDATE(errno == EINTR, "waiting for {}: {}", command[0], std::strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

nlohmann::json ask(const std::vector<std::string>& arguments, const nlohmann::json& question) {
  const std::filesystem::path python = project_folder() / ".venv" / "bin" / "python";
  const std::filesystem::path script = project_folder() / "reference" / "tokenizer_cli.py";
  for (const auto& needed : {python, script}) {
    SP_VALIDATE(std::filesystem::exists(needed),
                "text needs {}, which is not there: run harness/setup, or give --prompt-ids",
                needed.string());
  }
  std::vector<std::string> command = {python.string(), script.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Scratch in(question.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  const Scratch out, errors;
  const int status = run_to_end(command, in, out, errors);
  SP_VALIDATE(status == 0, "the tokenizer ended with status {}: {}", status,
              last_line(errors.read()));
  const auto answer = nlohmann::json::parse(out.read(), nullptr, /*allow_exceptions=*/false);
  SP_VALIDATE(answer.is_array() && answer.size() == question.size(),
              "the tokenizer answered something else than {} items", question.size());
  return answer;
}

}  // namespace

std::vector<std::vector<int64_t>> Tokenizer::encode(const std::vector<std::string>& texts,
                                                    bool chat) const {
  std::vector<std::string> arguments = {"encode", directory_.string()};
  if (chat) arguments.push_back("--chat");
  return ask(arguments, texts).get<std::vector<std::vector<int64_t>>>();
}

std::vector<std::string> Tokenizer::decode(const std::vector<std::vector<int64_t>>& ids) const {
  return ask({"decode", directory_.string()}, ids).get<std::vector<std::string>>();
}

}  // namespace shardproof
