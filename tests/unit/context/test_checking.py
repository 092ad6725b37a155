"""What a model's notes say against the originals: numbers, dates, names and negations. Sixty lines that contradict what
was said, and over a hundred that do not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from gateway.context.checking import checked
from gateway.domain.message import assistant, user

# What was said, the line of the notes, and what the line must not say any more.
WRONG = [
    # a number
    ("The deposit for the flat is 1,450 euros.", "The deposit for the flat is 1,540 euros.", "1,540"),
    ("We need 24 chairs for the wedding.", "Needs 42 chairs for the wedding.", "42"),
    ("My landlord raised the rent to 980 euros.", "The landlord raised the rent to 890 euros.", "890"),
    ("The server listens on port 8443.", "Server listens on port 8433.", "8433"),
    ("I take 75 mg of sertraline every morning.", "Takes 57 mg of sertraline every morning.", "57"),
    ("Dinner for 14 people at the Olive Tree.", "Dinner for 40 people at the Olive Tree.", "40 people"),
    ("Die Heizung soll auf 21 Grad bleiben.", "Die Heizung soll auf 12 Grad bleiben.", "12 Grad"),
    ("El presupuesto para la cocina es de 7.500 euros.", "El presupuesto para la cocina es de 5.700 euros.", "5.700"),
    ("The flight to Lisbon costs 210 euros and the hotel 640 euros.",
     "The flight to Lisbon costs 640 euros and the hotel 210 euros.", "costs 640"),
    ("Retries are limited to 5 attempts with a timeout of 30 seconds.",
     "Retries are limited to 30 attempts with a timeout of 5 seconds.", "30 attempts"),
    ("The tank holds 55.5 litres.", "The tank holds 5.55 litres.", "5.55"),
    ("Our conversion rate was 3.2 % in the spring campaign.",
     "Conversion rate was 32 % in the spring campaign.", "32 %"),
    # a date or a time
    ("My flight leaves on 14 March.", "The flight leaves on 15 March.", "15 March"),
    ("The dentist appointment is on Tuesday at 9:30.", "The dentist appointment is on Thursday at 9:30.", "Thursday"),
    ("Der Umzug ist am 3. Mai.", "Der Umzug ist am 3. März.", "3. März"),
    ("The deadline for the grant is 2026-09-30.", "The deadline for the grant is 2026-09-03.", "2026-09-03"),
    ("The train to Ghent goes at 18:42.", "The train to Ghent goes at 18:24.", "18:24"),
    ("Mum's birthday is on June 8th.", "Mum's birthday is on July 8th.", "July 8th"),
    ("The warranty ends in October 2027.", "The warranty ends in October 2026.", "2026"),
    ("La reunión con el notario es el jueves.", "La reunión con el notario es el martes.", "martes"),
    ("Standup moved to 10:15 every weekday.", "Standup moved to 11:15 every weekday.", "11:15"),
    ("My sister was born in 1987.", "The sister was born in 1978.", "1978"),
    # a name
    ("Anna will pay the caterer.", "Ben will pay the caterer.", "Ben will pay", "Ben chose the music."),
    ("Send the invoice to Mr Okafor.", "Send the invoice to Mr Lindqvist.", "Lindqvist", "Mr Lindqvist is on holiday."),
    ("Priya reviews the release and Tom deploys it.", "Tom reviews the release and Priya deploys it.", "Tom reviews"),
    ("We booked the hotel Miramar in Porto.", "Booked the hotel Miramar in Faro.", "Faro", "We fly back from Faro."),
    ("Jonas owes Mira 60 euros.", "Mira owes Jonas 60 euros.", "Mira owes"),
    ("The vet said that Balu needs the insulin.",
     "The vet said that Kira needs the insulin.", "Kira", "Kira is a cat."),
    ("Clara kommt mit dem Zug nach Graz.", "Clara kommt mit dem Zug nach Linz.", "Linz", "Mein Bruder wohnt in Linz."),
    ("Leila picks up the keys from Marco.", "Marco picks up the keys from Leila.", "Marco picks"),
    # a negation
    ("I do not eat pork.", "Eats pork.", "Eats pork."),
    ("Never restart the payment service during the day.", "Restart the payment service during the day.", "- Restart"),
    ("I'm allergic to penicillin.", "Not allergic to penicillin.", "Not allergic"),
    ("The contract doesn't include parking.", "The contract includes parking.", "contract includes"),
    ("Ich möchte keinen Fensterplatz im Zug.", "Möchte einen Fensterplatz im Zug.", "Möchte einen"),
    ("We decided to keep the old logo on the website.",
     "Decided not to keep the old logo on the website.", "not to keep"),
    ("No puedo viajar en agosto.", "Puede viajar en agosto.", "Puede viajar"),
    ("The tests on the main branch no longer fail.", "The tests on the main branch fail.", "branch fail."),
    ("Don't send the newsletter without Rosa's approval.",
     "Send the newsletter without Rosa's approval.", "- Send the"),
    ("Je ne travaille pas le vendredi.", "Travaille le vendredi.", "Travaille le vendredi."),
]  # fmt: skip

# What was said, and a line of the notes that is all right.
RIGHT = [
    ("The deposit for the flat is 1,450 euros.", "The flat's deposit: €1450."),
    ("The deposit for the flat is 1,450 euros.", "The deposit for the flat is about 1,500 euros."),
    ("We had 1,987 visitors at the fair.", "Roughly 2,000 visitors came to the fair."),
    ("The budget is 12,000 dollars for the kitchen.", "The kitchen's budget is $12k."),
    ("We need twenty-four chairs and six tables.", "Needs 24 chairs and 6 tables."),
    ("I run five kilometres each morning.", "Runs 5 km each morning."),
    ("The rent was 890 euros. It is 980 euros now.", "The rent is 980 euros now; it was 890 euros."),
    ("The server listens on port 8443.", "Port of the server: 8443 (HTTPS)."),
    ("Dinner for 14 people at the Olive Tree, on Friday at 8 pm.",
     "Dinner at the Olive Tree: Friday, 20:00, 14 people."),
    ("My flight leaves on 14 March.", "The flight leaves on March 14th."),
    ("My flight leaves on 14 March.", "Flug am 14. März."),
    ("The deadline for the grant is 2026-09-30.", "The deadline for the grant is 30 September 2026."),
    ("Der Umzug ist am 3. Mai.", "The move is on 3 May."),
    ("The dentist appointment is on Tuesday at 9:30.", "Dentist: Tuesday, 9:30 am."),
    ("La reunión con el notario es el jueves a las 11.", "The meeting with the notary is on Thursday at 11."),
    ("Anna will pay the caterer.", "The caterer will be paid by Anna."),
    ("Jonas owes Mira 60 euros.", "Mira is owed 60 euros by Jonas."),
    ("Priya reviews the release and Tom deploys it.", "The release is reviewed by Priya and deployed by Tom."),
    ("My flight to Lisbon is booked.", "Dana's flight to Lisbon is booked."),
    ("We booked the hotel Miramar in Porto.", "Hotel: Miramar, Porto (booked)."),
    ("I do not eat pork.", "Avoids pork."),
    ("I do not eat pork.", "Doesn't eat pork."),
    ("I do not eat pork.", "Eats no pork."),
    ("Never restart the payment service during the day.", "The payment service must not be restarted during the day."),
    ("Ich möchte keinen Fensterplatz im Zug.", "Wants no window seat on the train."),
    ("The contract doesn't include parking.", "Parking is not part of the contract."),
    ("The contract doesn't include parking.", "The contract is without parking."),
    ("No puedo viajar en agosto.", "Cannot travel in August."),
    ("The tests on the main branch no longer fail.", "The tests on the main branch pass again."),
    ("I can't stand coriander.", "Dislikes coriander."),
    ("We decided not to keep the old logo. In the end we keep the old logo on the website.",
     "The old logo is kept on the website."),
    ("The train to Ghent goes at 18:42.", "Train to Ghent at 6:42 pm."),
    ("Our conversion rate was 3.2 % in the spring campaign.", "Conversion in spring: 3.2 percent."),
    ("The tank holds 55.5 litres.", "The tank holds 55,5 l."),
    ("Compare the three offers: 310, 290 and 450 euros.", "Three offers were compared; the cheapest is 290 euros."),
    ("Milk costs 1.20 and bread costs 3.10.", "Milk and bread cost 4.30 together."),
    ("My sister was born in 1987.", "The sister, born 1987, is named Ida."),
    ("Send the invoice to Mr Okafor. Copy Mr Lindqvist.", "Mr Okafor gets the invoice, Mr Lindqvist a copy."),
    ("The meeting is on Monday. The meeting with the bank is on Friday.", "The meeting with the bank is on Friday."),
    ("The office in Oulu has postcode 6368.", "Oulu: 22."),
    ("My landlord raised the rent to 980 euros in May.", "The rent was raised in May, to 980 euros; asked in Linz."),
]  # fmt: skip

# Values that were made of others, changed right after they were said, or stand in another order.
MADE = [
    ("The train leaves at 8:15. They moved it by half an hour.", "The train leaves at 8:45."),
    ("The budget is 5000 euros. Add 1000 euros to the budget please.", "The budget is 6000 euros."),
    ("The timeout is 30 seconds. Double it.", "The timeout is 60 seconds."),
    ("Half of the 40 guests are vegan.", "20 guests are vegan."),
    ("We sold 40 in May, 50 in June and 60 in July.", "Sold 150 in May, June and July."),
    ("The trip takes 2 weeks.", "The trip takes 14 days."),
    ("The file has 1,536 MB in total.", "The file has 1.5 GB in total."),
    ("Take 2 pills in the morning and 1 pill in the evening.", "1 pill in the evening, 2 pills in the morning."),
    ("The door code is 4711, the alarm code is 0815.", "Alarm code 0815; door code 4711."),
    ("Wir treffen uns am 3. März um 15 Uhr.", "Treffen am 03.03. um 15:00 Uhr."),
    ("Alice will review the code. Bob will take it over from Alice.", "Bob will review the code."),
    ("I paid 1/2 of 300 euros.", "Paid 150 euros."),
    ("The ticket costs 12 euros. We need 5 tickets.", "The tickets cost 60 euros in all."),
    ("We planned it for 5 May. Let's do it on the 12th.", "Planned for 12 May."),
    ("The flight from Rome to Oslo is at 9:10. And the way back? That one is at 17:40.",
     "The flight from Oslo to Rome is at 17:40."),
    ("Max took the early train; Paul took the late train.", "Paul took the late train, Max took the early train."),
    ("The lamp doesn't work. I changed the bulb and it shines.", "The lamp works."),
    ("Tom called Ben. Ben called Tom back.", "Ben called Tom."),
    ("Don't forget to call Anna on Monday.", "Call Anna on Monday."),
    ("Nicht vergessen: Milch kaufen.", "Milch kaufen."),
    ("Without doubt the invoice is paid.", "The invoice is paid."),
]  # fmt: skip


# Names and codes that nobody said, in the place of one that was said.
STRANGE = [
    ("Anna will pay the caterer.", "Berta will pay the caterer.", "Berta"),
    ("We booked the hotel Miramar in Porto.", "Booked the hotel Miramar in Faro.", "Faro"),
    ("Send the invoice to Mr Okafor.", "Send the invoice to Mr Lindqvist.", "Lindqvist"),
    ("My daughter Lena starts school in August.", "The daughter Lara starts school in August.", "Lara"),
    ("The order is A-1234 and it ships today.", "The order is A-1324 and ships today.", "A-1324"),
    ("Ticket HELP-4093 is about the heating.", "Ticket HELP-4039 is about the heating.", "HELP-4039"),
    ("The script lives in ~/backup/nightly.sh.", "The script lives in ~/backup/weekly.sh.", "weekly.sh"),
    ("Reach me at hilde@example.org.", "Reachable at hilda@example.org.", "hilda@"),
    ("We fly to Lisbon with TAP on 4 June.", "They fly to Lisbon with Iberia on 4 June.", "Iberia"),
    ("Our accountant is called Petrov.", "The accountant is called Pavlov.", "Pavlov"),
    ("The database runs on Postgres in Frankfurt.", "The database runs on MySQL in Frankfurt.", "MySQL"),
    ("Mein Bruder Karl wohnt in Graz.", "Der Bruder Karl wohnt in Linz.", "Linz"),
    ("Mi hermana Lucía vive en Bilbao.", "La hermana Lucía vive en Burgos.", "Burgos"),
    ("Je travaille chez Renault à Douai.", "Travaille chez Peugeot à Douai.", "Peugeot"),
    ("The server web-7 runs in rack B12.", "The server web-7 runs in rack C12.", "C12"),
    ("My car is registered as KR-AB 4417.", "The car is registered as KR-AB 4471.", "4471"),
    ("I do not eat pork.", "Eats pork.", "Eats pork"),
    ("The flight leaves on 14 March at 9:30.", "The flight leaves on 15 March at 9:30.", "15 March"),
    ("The deposit is 1,450 euros.", "The deposit is 1,540 euros.", "1,540"),
    ("Flight LH 441 goes to Denver.", "Flight LH 441 goes to Dallas.", "Dallas"),
    ("The wifi password is tulip77.", "The wifi password is tulip78.", "tulip78"),
    ("Version 2.4.1 has the bug.", "Version 2.4.7 has the bug.", "2.4.7"),
]

# The same in other words, in another language, with what everybody knows added.
REWORDED = [
    ("Mein Zahnarzt Dr. Weber ist in München.", "Dentist: Dr. Weber, in Munich."),
    ("I fly to Köln on Monday.", "Flies to Cologne on Monday."),
    ("Anna will pay the caterer.", "The caterer is paid by Anna."),
    ("My flight to Lisbon is booked.", "Dana's flight to Lisbon is booked."),
    ("Please write to Mr. Smith.", "Wants to write to John Smith."),
    ("The Eiffel Tower was great, we stayed near it.", "Stayed near the Eiffel Tower in Paris."),
    ("We moved to 10 Downing Street.", "Moved to 10 Downing Street in London."),
    ("Я живу в Москве.", "Lives in Moscow."),
    ("我住在北京。", "Lives in Beijing."),
    ("Мой брат Иван работает врачом.", "Brother Ivan works as a doctor."),
    ("My sister Katarzyna lives in Kraków.", "Sister Katarzyna lives in Krakow."),
    ("Ich arbeite bei der Deutschen Bahn.", "Works for Deutsche Bahn."),
    ("Fahr mit Annas Auto nach Ulm.", "Travels to Ulm in Anna's car."),
    ("The order is A-1234 and it ships today.", "Order A-1234 ships today."),
    ("The order is A-1234 and it ships today.", "Order #A-1234: shipping today."),
    ("Ticket HELP-4093 is about the heating.", "HELP-4093 concerns heating."),
    ("The script lives in ~/backup/nightly.sh.", "Script: ~/backup/nightly.sh (runs each night)."),
    ("The script lives in ~/backup/nightly.sh.", "The script nightly.sh lives in ~/backup."),
    ("Reach me at hilde@example.org.", "Email: hilde@example.org."),
    ("We use python 3.11 on debian.", "Uses Python 3.11 on Debian."),
    ("we deploy with docker to aws", "Deploys with Docker to AWS."),
    ("my dog is a golden retriever named max", "Dog: Max, a Golden Retriever."),
    ("Mum turns 80 in October.", "Mother's 80th birthday: October."),
    ("The meeting is at 3 pm.", "The meeting is at 15:00."),
    ("I take 12.5 mg every evening.", "Takes 12.5 mg each evening."),
    ("I owe Mira 60 euros.", "Owes Mira €60."),
    ("Call me back under 0171 555 2233.", "Phone: +49 171 5552233."),
    ("The car is registered as KR-AB 4417.", "License plate KR-AB 4417."),
    ("The db is postgres in frankfurt.", "The DB is PostgreSQL in Frankfurt."),
    ("I was born in the GDR.", "Born in East Germany."),
    ("Tim/Tom will bring the cake on Friday.", "Tim and/or Tom will bring the cake on Friday."),
    ("My boss is Ms. Tanaka.", "Boss: Tanaka."),
    ("Flight LH 441 goes to Denver.", "Flight LH441 goes to Denver, Colorado."),
    ("My landlord is a jerk and his name is Bill.", "Landlord named Bill."),
    ("We eat at the Olive Tree on Friday.", "Dinner at The Olive Tree (Friday)."),
    ("I want to learn Spanish before the trip to Peru.", "Learning Spanish for a trip to Peru."),
    ("Remind me to call Anna and Ben about the boat.", "Reminder: call Ben and Anna about the boat."),
    ("My son plays for the Tigers.", "The son plays for the Tigers (football)."),
    ("The flat in Rue Daguerre costs 900.", "Flat on Rue Daguerre, Paris: 900."),
    ("Our CEO will visit Oslo.", "The CEO visits Oslo."),
    ("We met Jean-Luc at the fair.", "Met Jean-Luc at the fair."),
    ("My wife's name is Siobhán.", "Wife: Siobhan."),
    ("Ich fahre mit Peters Schwester nach Wien.", "Goes to Vienna with Peter's sister."),
    ("On part à Londres avec Julie.", "Travels to London with Julie."),
    ("Vivo en Nueva York con Marta.", "Lives in New York with Marta."),
    ("Sie heißt Müller und wohnt in Zürich.", "Her name is Mueller; lives in Zurich."),
    ("Mein Chef heißt Jürgen Groß.", "Boss is Juergen Gross."),
    ("I like the novel War and Peace.", "Likes the novel War and Peace by Tolstoy."),
    ("The tests in test_api.py fail with KeyError.", "Tests in test_api.py fail (KeyError)."),
    ("I live in Springfield.", "Lives in Springfield, USA."),
    ("Our team uses GH Actions for CI.", "Team uses GitHub Actions for CI."),
    ("My MacBook is broken.", "Apple laptop (MacBook) is broken."),
    ("Can you check the price of the iPhone 15?", "Asked about the price of the Apple iPhone 15."),
    ("We go by train to Praha.", "Goes by train to Prague."),
    ("Version 2.4.1 has the bug.", "The bug is in v2.4.1."),
    ("Say hi to Liz.", "Greet Elizabeth (Liz)."),
    ("Tomorrow I see Dr Patel.", "Appointment with Doctor Patel tomorrow."),
    ("Grandma lives with us.", "Grandmother lives with them."),
    ("Our shop is closed on Mondays.", "Shop: closed Mondays."),
    ("I bought a VW Golf.", "Bought a Volkswagen Golf."),
    ("We booked with Lufthansa.", "Booked a Lufthansa flight."),
    ("My brother lives in NYC.", "The brother lives in New York."),
    ("I drink tea; Anna drinks coffee.", "Anna drinks coffee."),
    ("The office is in The Hague.", "The office is in Den Haag."),
    ("My cat Minka is sick.", "Cat Minka is ill."),
    ("We have a Bosch washing machine.", "Washing machine: Bosch."),
]


# True, although it stands nowhere in the talk: put together, counted, spelt otherwise, or read from a picture.
NOWHERE = [
    ("See the picture.", "The picture shows invoice INV-20457 of Mr Weber."),
    ("Call me at 0171 555 1234.", "Phone: +491715551234."),
    ("We have 1200000 from A and 345678 from B.", "Total: 1545678."),
    ("I am in /srv/app/backend. main.py fails.", "File: /srv/app/backend/main.py fails."),
    ("My name is Ann, the mail is ann at example dot com.", "Mail: ann@example.com."),
    ("The code is four seven one one, then A.", "Code: 4711A."),
    ("رقم الطلب ٤٥٦٧٨٩١", "Order 4567891."),
    ("Đorđević called.", "Mr Djordjevic called."),
    ("I am a senior coder at Acme.", "Is a Sr Engineer at Acme."),
    ("Write the mail now, as pinned.", "Mail goes to the boss, copy to audit@acme.com."),
]


@pytest.mark.parametrize("case", [*WRONG, *STRANGE], ids=lambda case: case[1])
def test_what_contradicts_the_originals_is_corrected_or_dropped(case: tuple[str, ...]) -> None:
    said, line, gone, *more = case
    talk = [user("Hello."), *map(user, more), user(said), assistant("Noted.")]
    notes, corrections = checked(f"## Facts\n- {line}\n- Likes tea.", talk, "")
    assert gone not in notes
    assert len(corrections) == 1
    assert "- Likes tea." in notes


@pytest.mark.parametrize("case", [*RIGHT, *MADE, *REWORDED, *NOWHERE], ids=lambda case: case[1])
def test_what_says_the_same_stays(case: tuple[str, str]) -> None:
    said, line = case
    notes = f"## Facts\n- {line}"
    assert checked(notes, [user("Hello."), user(said), assistant("Noted.")], "") == (notes, [])


# Fifty sentences of the notes against 900 messages that are all alike but for two numbers.
WORK = [
    (lambda place: f"The order of Anna for room {place} costs {place * 3} euros in Porto.", 4_000),  # word for word
    (lambda place: f"Anna's order for room {place} costs {place * 3} euros, nobody paid for the sauna.", 150_000),
]


@pytest.mark.parametrize(("line", "most"), WORK, ids=["word for word", "in other words"])
def test_a_long_conversation_takes_little_work(line: Callable[[int], str], most: int) -> None:
    said = "The order of Anna for room {} costs {} euros in Porto. Then we talked of the weather on Friday."
    talk = [user(said.format(place, place * 3)) for place in range(900)]
    notes = "\n".join(f"- {line(place)}" for place in range(0, 900, 18))
    checked(notes, talk[:1], "")  # patterns are compiled when they are first used
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        assert checked(notes, talk, "") == (notes, [])
    finally:
        sys.setprofile(None)
    assert calls <= most
