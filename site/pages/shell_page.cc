#include "site/pages/shell_page.h"

#include <string>

namespace weir::site::pages {
namespace {

void needs_script(Html& out, const Words& words) {
  out("<noscript><p class=\"note\">"_html, words("layout.needs_script"), "</p></noscript>\n"_html);
}

struct Field {
  std::string_view name, type, autocomplete, hint;
  bool required = true;
};

void field(Html& out, const Words& words, const Field& field) {
  out("<div class=\"field\"><label for=\""_html, field.name, "\">"_html,
      words("auth." + std::string(field.name)));
  if (!field.hint.empty())
    out(" <span class=\"hint\" id=\""_html, field.name, "-hint\">"_html, words(field.hint), "</span>"_html);
  out("</label><input class=\"input\" id=\""_html, field.name, "\" name=\""_html, field.name,
      "\" type=\""_html, field.type, "\" autocomplete=\""_html, field.autocomplete,
      "\" aria-describedby=\""_html, field.name, "-error\""_html,
      field.required ? " aria-required=\"true\""_html : ""_html,
      field.type == "email" ? " autocapitalize=\"none\" spellcheck=\"false\""_html : ""_html,
      "><p class=\"error\" id=\""_html, field.name, "-error\" role=\"alert\" data-testid=\""_html, field.name,
      "-error\"></p></div>\n"_html);
}

struct Form {
  std::string_view kind;  // "sign-in" or "sign-up"
  std::string_view title, submit, beside, beside_link, beside_href;
  bool choosing = false;
};

Page form_page(const Visit& visit, std::string_view next, const Form& form) {
  const Words& words = visit.words();
  Page page;
  page.title = words(form.title);
  page.entry = "auth";
  page.sections = {"auth"};
  page.kind = "form-page";
  page.body("<h1 class=\"page-title\">"_html, page.title, "</h1>\n"_html);
  needs_script(page.body, words);
  page.body(
      "<form id=\""_html, form.kind, "\" data-auth=\""_html, form.kind, "\" data-testid=\""_html, form.kind,
      "\" data-next=\""_html, next,
      "\" method=\"post\" novalidate>\n"
      "<p id=\"form-word\" class=\"note bad form-word\" role=\"alert\" data-testid=\"form-word\"></p>\n"_html);
  field(page.body, words, {"email", "email", form.choosing ? "email" : "username", ""});
  if (form.choosing) field(page.body, words, {"nickname", "text", "nickname", "auth.nickname_hint", false});
  field(page.body, words,
        {"password", "password", form.choosing ? "new-password" : "current-password",
         form.choosing ? "auth.password_hint" : ""});
  page.body("<button class=\"button main\" type=\"submit\" data-testid=\"submit\">"_html, words(form.submit),
            "</button>\n</form>\n<p class=\"beside\">"_html, words(form.beside), " <a href=\""_html,
            form.beside_href, "?next="_html, percent_encoded(next), "\">"_html, words(form.beside_link),
            "</a></p>\n"_html);
  return page;
}

}  // namespace

Page sign_in_page(const Visit& visit, std::string_view next) {
  return form_page(
      visit, next,
      {"sign-in", "auth.sign_in_title", "auth.sign_in", "auth.new_here", "auth.sign_up", "/signup"});
}

Page sign_up_page(const Visit& visit, std::string_view next) {
  return form_page(visit, next,
                   {"sign-up", "auth.sign_up_title", "auth.sign_up", "auth.have_account", "auth.sign_in",
                    "/signin", true});
}

Page write_page(const Visit& visit, std::optional<Id> article) {
  const Words& words = visit.words();
  Page page;
  page.title = words("write.page_title");
  page.here = "write";
  page.entry = "write";
  page.sections = {"write", "auth"};
  page.kind = "write-page";
  page.body("<h1 class=\"sr\">"_html, page.title, "</h1>\n"_html);
  needs_script(page.body, words);
  page.body("<div id=\"app\" data-id=\""_html);
  if (article) page.body(*article);
  page.body("\"></div>\n"_html);
  return page;
}

Page mine_page(const Visit& visit, std::string_view list) {
  const Words& words = visit.words();
  Page page;
  page.title = words("mine." + std::string(list) + "_title");
  page.entry = "mine";
  page.sections = {"mine"};
  page.kind = "mine-page";
  page.body("<h1 class=\"page-title\">"_html, page.title, "</h1>\n"_html);
  needs_script(page.body, words);
  page.body("<div id=\"app\" data-list=\""_html, list, "\"></div>\n"_html);
  return page;
}

}  // namespace weir::site::pages
